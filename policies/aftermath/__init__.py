"""What is looked at once a gate has failed, so that a person need not: one file a question, none of them a verdict."""
