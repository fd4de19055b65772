/** A client that sends arbitrary bytes, for requests that no HTTP library would send. */
import { speak } from './peer.ts';

/** Returns everything received until the connection ends, however it ends. */
export function sendRaw(port: number, text: string): Promise<string> {
  return speak(port, text).closed;
}

/** A request with `Connection: close`. */
export function rawRequest(line: string, headers: readonly string[] = [], body = ''): string {
  return [`${line} HTTP/1.1`, 'Host: front.example', 'Connection: close', ...headers, '', body].join('\r\n');
}

export const statusOf = (response: string) => Number(response.split(' ')[1]);

/** The body of a response that `sendRaw` returned. */
export const bodyOf = (response: string) => response.slice(response.indexOf('\r\n\r\n') + 4);
