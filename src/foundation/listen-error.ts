/** Why a server cannot listen. */
import { codeOf, messageOf } from './errors.ts';

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  /** The names of the settings for host and port, if there are any. */
  readonly hostSetting?: string;
  readonly portSetting?: string;
}

/** Explains why a server of any protocol cannot listen, and names the setting or limit to change. Keeps the `code`. */
export function listenError(cause: unknown, { host, port, hostSetting, portSetting }: ListenAddress): Error {
  const code = codeOf(cause);
  const chooseHost = hostSetting === undefined ? '' : ` with ${hostSetting}`;
  const choosePort = portSetting === undefined ? '' : ` with ${portSetting}`;
  const remedies: Readonly<Record<string, string>> = {
    EADDRINUSE: `another process uses the port: stop it, or choose another port${choosePort} (0 picks a free one)`,
    EADDRNOTAVAIL: `this machine has no such address: choose one of its addresses${chooseHost}`,
    EACCES: `this user may not listen on that port: choose a port from 1024 up${choosePort}`,
    EMFILE: 'this process has reached its limit of open files: raise it (ulimit -n)',
  };
  const remedy = remedies[code] ?? `choose another address${chooseHost} or another port${choosePort}`;
  const message = `cannot listen on ${host}:${port} (${code || messageOf(cause)}): ${remedy}`;
  return Object.assign(new Error(message, { cause }), { code });
}
