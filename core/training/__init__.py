"""Training and judging the embedded model: problems, tokenizer, objective, trainer, evaluation."""
