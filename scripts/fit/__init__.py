"""How the model of the evaluator `lexical` comes about; `scripts/fit_evaluator.py` runs it."""
