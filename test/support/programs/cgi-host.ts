/** Serves a CGI program over HTTP (RFC 3875): starts a process for each request and sends its output when it ends. */
import { spawn } from 'node:child_process';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';

/**
 * @param env variables of the program, in addition to those of CGI
 * @param userHeader the request header with the user's name
 */
export function cgiHost(
  [command = '', ...args]: readonly string[],
  env: Readonly<Record<string, string>>,
  userHeader: string,
): RequestListener {
  return async (req, res) => {
    const child = spawn(command, args, {
      env: {
        PATH: process.env['PATH'],
        ...env,
        ...variablesOf(req),
        REMOTE_USER: String(req.headers[userHeader] ?? ''),
      },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    // A program may respond before it has read the whole body.
    child.stdin.on('error', () => req.resume());
    req.pipe(child.stdin);
    send(res, await buffer(child.stdout));
  };
}

function variablesOf({ method, url = '/', headers }: IncomingMessage): NodeJS.ProcessEnv {
  const { pathname, search } = new URL(url, 'http://cgi.test');
  const fromHeaders = Object.entries(headers).map(([name, value]) => [
    `HTTP_${name.toUpperCase().replaceAll('-', '_')}`,
    String(value),
  ]);
  return {
    ...Object.fromEntries(fromHeaders),
    REQUEST_METHOD: method,
    PATH_INFO: pathname,
    QUERY_STRING: search.slice(1),
    CONTENT_TYPE: headers['content-type'],
    CONTENT_LENGTH: headers['content-length'],
  };
}

function send(res: ServerResponse, output: Buffer): void {
  const end = output.indexOf('\r\n\r\n');
  const lines = output.subarray(0, end).toString('latin1').split('\r\n');
  for (const line of lines) {
    const [name = '', value = ''] = line.split(': ');
    if (name === 'Status') res.statusCode = Number.parseInt(value, 10);
    else res.setHeader(name, value);
  }
  res.end(output.subarray(end + 4));
}
