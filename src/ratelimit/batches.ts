/** Questions of one turn of the event loop, asked together: a round trip costs hardly more for fifty than for one. */

export interface BatchesOptions<Question, Answer> {
  /** Asks them all; answers in their order, an Error in place of the answer that only one of them did not get. */
  readonly ask: (questions: readonly Question[]) => Promise<readonly (Answer | Error)[]>;
  readonly weightOf: (question: Question) => number;
  /** No batch weighs more, unless a single question does: others than we wait for whoever answers. */
  readonly weightMax: number;
}

/** Rejects with the error of the whole batch, or with its own. */
export type AskInBatch<Question, Answer> = (question: Question) => Promise<Answer>;

export function createBatches<Question, Answer>(
  options: BatchesOptions<Question, Answer>,
): AskInBatch<Question, Answer> {
  const { ask, weightOf, weightMax } = options;
  let batches: Batch<Question, Answer>[] = [];

  function flush(): void {
    const full = batches;
    batches = [];
    for (const batch of full) void settle(batch, ask);
  }

  function batchFor(weight: number): Batch<Question, Answer> {
    const last = batches.at(-1);
    if (last !== undefined && last.weight + weight <= weightMax) return last;
    if (last === undefined) setImmediate(flush);
    const batch = { questions: [], waiting: [], weight: 0 };
    batches.push(batch);
    return batch;
  }

  return (question) => {
    const weight = weightOf(question);
    const batch = batchFor(weight);
    batch.weight += weight;
    batch.questions.push(question);
    return new Promise((resolve, reject) => batch.waiting.push({ resolve, reject }));
  };
}

interface Batch<Question, Answer> {
  readonly questions: Question[];
  readonly waiting: { resolve(answer: Answer): void; reject(error: unknown): void }[];
  weight: number;
}

async function settle<Question, Answer>(
  { questions, waiting }: Batch<Question, Answer>,
  ask: BatchesOptions<Question, Answer>['ask'],
): Promise<void> {
  try {
    const answers = await ask(questions);
    for (const [index, { resolve, reject }] of waiting.entries()) {
      const answer = answers[index];
      if (answer === undefined || answer instanceof Error) reject(answer);
      else resolve(answer);
    }
  } catch (error) {
    for (const { reject } of waiting) reject(error);
  }
}
