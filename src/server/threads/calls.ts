/** Calls functions of another thread: arguments and results are messages, which arrive in order. */
import { messageOf } from '#foundation';

/** The functions that a thread offers to another. Arguments and results must be plain data. */
type Functions<Names extends PropertyKey> = Readonly<Record<Names, (...args: never[]) => unknown>>;

/** A port of `node:worker_threads`, or the Worker itself. */
export interface CallPort {
  readonly postMessage: (message: unknown) => void;
  readonly on: (event: 'message', listener: (message: CallMessage) => void) => unknown;
}

/** A call, or its outcome under the same number. */
export type CallMessage =
  | { readonly call: number; readonly name: string; readonly args: readonly unknown[] }
  | { readonly outcome: number; readonly value?: unknown; readonly error?: SentError };

interface SentError {
  readonly message: string;
  readonly stack: string | undefined;
}

export interface Calls<Theirs extends Functions<keyof Theirs>> {
  /** Resolves to the result of the function. Rejects with its error, or if the other thread has ended. */
  readonly call: <Name extends keyof Theirs & string>(
    name: Name,
    ...args: Parameters<Theirs[Name]>
  ) => Promise<Awaited<ReturnType<Theirs[Name]>>>;
  /** Rejects all calls without a result, and later ones: the other thread has ended. */
  readonly end: () => void;
}

/** `ours` are the functions that the other thread may call. */
export function createCalls<Theirs extends Functions<keyof Theirs>>(port: CallPort, ours: object): Calls<Theirs> {
  const waiting = new Map<number, Waiting>();
  let calls = 0;
  let hasEnded = false;

  async function serve(call: number, name: string, args: readonly unknown[]): Promise<void> {
    try {
      const value: unknown = await Reflect.get(ours, name)(...args);
      port.postMessage({ outcome: call, value });
    } catch (thrown) {
      const stack = thrown instanceof Error ? thrown.stack : undefined;
      port.postMessage({ outcome: call, error: { message: messageOf(thrown), stack } });
    }
  }

  function settle(number: number, value: unknown, error: SentError | undefined): void {
    const call = waiting.get(number);
    waiting.delete(number);
    if (error === undefined) call?.resolve(value);
    else call?.reject(Object.assign(new Error(error.message), { stack: error.stack }));
  }

  port.on('message', (message) => {
    if ('call' in message) void serve(message.call, message.name, message.args);
    else settle(message.outcome, message.value, message.error);
  });

  return Object.freeze({
    call<Name extends keyof Theirs & string>(name: Name, ...args: Parameters<Theirs[Name]>) {
      if (hasEnded) return Promise.reject(new ThreadEnded());
      calls += 1;
      const number = calls;
      port.postMessage({ call: number, name, args });
      return new Promise<Awaited<ReturnType<Theirs[Name]>>>((resolve, reject) => {
        waiting.set(number, { resolve: resolve as Waiting['resolve'], reject });
      });
    },
    end() {
      hasEnded = true;
      for (const { reject } of waiting.values()) reject(new ThreadEnded());
      waiting.clear();
    },
  });
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** The outcome of a call whose thread has ended. */
export class ThreadEnded extends Error {
  constructor() {
    super('the thread has ended');
  }
}
