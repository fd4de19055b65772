/** The error of a request that no limiter could answer: the asker's fault, with a message for the asker. */
export class InvalidRequest extends Error {
  override readonly name = 'InvalidRequest';
}
