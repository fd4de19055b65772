/** The error of a request that could not be counted: an outage of the counters, which is in the log already, once. */
export class NotCounted extends Error {
  override readonly name = 'NotCounted';
}
