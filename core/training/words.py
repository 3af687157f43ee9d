"""The closed word lists the generators draw from."""

HE = (
    "Sam", "Tom", "Ben", "Max", "Leo", "Karl", "Hugo", "Noah", "Eric", "Ivan", "Omar", "Paul",
    "Luis", "Adam", "Finn", "Jack", "Owen", "Ravi", "Theo", "Zane",
)  # fmt: skip
SHE = (
    "Mia", "Ana", "Eva", "Pam", "Fay", "Hana", "Lucy", "Nina", "Rosa", "Sara", "Tina", "Vera",
    "Zoe", "Amy", "Bella", "Clara", "Dora", "Gina", "Iris", "June",
)  # fmt: skip
NAMES = HE + SHE
OBJECTS = (
    "apples", "pears", "books", "coins", "cards", "pens", "shells", "stamps", "eggs", "cookies",
    "marbles", "stickers", "balls", "plums", "cakes", "beads", "buttons", "candles", "nuts", "keys",
)  # fmt: skip
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
