"""What a chat model writes for a built question: questions, answers, distractors."""
