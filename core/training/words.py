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
CITIES = (
    "Cairo", "Paris", "Rome", "Lima", "Oslo", "Berlin", "Madrid", "London", "Tokyo", "Delhi",
    "Quito", "Vienna", "Dublin", "Athens", "Prague", "Warsaw", "Boston", "Sydney", "Lisbon", "Seoul",
)  # fmt: skip
COLORS = (
    "red", "blue", "green", "pink", "gold", "gray", "brown", "black", "white", "yellow", "orange",
    "purple", "silver", "cream", "navy", "teal",
)  # fmt: skip
JOBS = (
    "singer", "tailor", "teacher", "painter", "driver", "lawyer", "doctor", "baker", "farmer",
    "pilot", "nurse", "writer", "dancer", "miner", "cook", "judge",
)  # fmt: skip
