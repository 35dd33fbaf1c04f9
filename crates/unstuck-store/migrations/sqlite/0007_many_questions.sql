-- Where there are many questions, one is found by its id, and those that were answered last.
CREATE INDEX questions_by_id ON questions (id);
CREATE INDEX questions_answered ON questions (answered) WHERE answered IS NOT NULL;
