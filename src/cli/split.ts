/** Starts each module as a separate process, waits until all are ready, stops them together (`npm run start:split`). */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { ModuleName } from '#config';
import type { CloseOptions } from '#server';
import { type ChildReport, formatAddresses, formatExamples } from './serve.ts';
import { takeStopSignals } from './stop-signals.ts';
import { colours, print } from './terminal.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export interface SplitOptions {
  readonly modules: readonly ModuleName[];
  readonly demo: boolean;
  /** How long the requests of all modules have at a stop. */
  readonly stopMs: number;
}

/**
 * Runs the modules with the same records until a signal comes, or until one of them ends. Resolves when all have ended,
 * with the exit code.
 */
export async function split(env: Environment, { modules, demo, stopMs }: SplitOptions): Promise<number> {
  const children = createChildren(demo, stopMs);
  /** What the gateway reaches across the network. */
  const services = modules.filter((name) => name !== 'gateway');
  let isAgain = false;
  const stop = (signal: NodeJS.Signals) => {
    process.stdout.write(`\n${signal}: requests in flight finish, then it stops. Again stops at once.\n`);
    if (isAgain) children.kill();
    else children.stop();
    isAgain = true;
  };
  takeStopSignals(stop);
  process.on('SIGHUP', children.reload);
  try {
    const reports = await Promise.all(services.map((name) => children.start(name, serviceEnvironment(name, env))));
    const found = new Map(services.map((name, index) => [name, reports[index]] as const));
    const gateway = await children.start('gateway', gatewayEnvironment(env, found, demo));
    print(process.stdout, banner(gateway, found, demo), colours.start);
  } catch {
    // The child has printed why it cannot start, and ended.
    children.stop();
  }
  return children.ended();
}

/** Settings of what clients reach: a service that had them as well would take the port, or answer in another way. */
const gatewayOnly = [
  'HOST',
  'PORT',
  'ADMIN_PORT',
  'TLS_CERT',
  'TLS_KEY',
  'CORS_ORIGINS',
  'SERVICE_ADDRESSES',
  'DRAIN_MS',
];

/** Services listen on loopback, where they believe the gateway about the client's address. */
function serviceEnvironment(name: ModuleName, env: Environment): Environment {
  const isShared = (key: string) =>
    !gatewayOnly.includes(key) && (key !== 'RATELIMIT_HTTP_PORT' || name === 'ratelimit');
  const shared = Object.entries(env).filter(([key]) => isShared(key));
  const TRUSTED_PROXIES = ['127.0.0.1', ...(env['TRUSTED_PROXIES'] ? [env['TRUSTED_PROXIES']] : [])].join();
  return { ...Object.fromEntries(shared), PORT: '0', TRUSTED_PROXIES };
}

type Reports = ReadonlyMap<ModuleName, ChildReport | undefined>;

/** Roles in users.yaml do not count where another process asks for passwords. */
function gatewayEnvironment(env: Environment, reports: Reports, demo: boolean): Environment {
  const found = [...reports].map(([name, report]) => `${name}=${new URL(urlOf(report)).host}`);
  const SERVICE_ADDRESSES = [...found, ...(env['SERVICE_ADDRESSES'] ? [env['SERVICE_ADDRESSES']] : [])].join();
  return { ...(demo && { ADMIN_USERS: 'demo' }), ...env, SERVICE_ADDRESSES };
}

/** A child runs one module, and that listens at one address, or beside it at the admin port or over HTTP. */
function urlOf(report: ChildReport | undefined): string {
  const { gateway, auth, ratelimit } = report?.listeners ?? {};
  return (gateway ?? auth ?? ratelimit)?.url ?? '';
}

function banner({ listeners, demoUsers }: ChildReport, reports: Reports, demo: boolean): string {
  const { gateway, admin } = listeners;
  const { auth, ratelimit, ...others } = Object.fromEntries(reports);
  const http = Object.entries(others).map(([name, report]) => [name, report?.listeners.gateway] as const);
  const addresses = {
    gateway,
    'rate limits': ratelimit?.listeners.ratelimit,
    'over HTTP': ratelimit?.listeners.ratelimitHttp,
    auth: auth?.listeners.auth,
    admin,
    ...Object.fromEntries(http),
  };
  return `${formatAddresses(addresses)}${demo && demoUsers.includes('demo') ? formatExamples(gateway?.url ?? '') : ''}\n`;
}

interface Children {
  /** Resolves when it listens, and rejects when it ends before. */
  readonly start: (name: ModuleName, env: Environment) => Promise<ChildReport>;
  /** Those that are ready: one that starts reads the files as they are, and the signal could end it. */
  readonly reload: () => void;
  /**
   * Stops the gateway first, so that its services answer until its last request has ended, and have the rest of the time.
   * A process that does not stop in time is killed. A second call does nothing.
   */
  readonly stop: () => void;
  /** Ends all at once. */
  readonly kill: () => void;
  /** 0 when all were stopped and none failed. */
  readonly ended: () => Promise<number>;
}

interface Child {
  readonly name: ModuleName;
  readonly process: ChildProcess;
  readonly ended: Promise<void>;
  isReady: boolean;
}

/** After the time for requests: until a process has closed its database, and its reader has the last lines of the log. */
const lastStepsMs = 3000;

function createChildren(demo: boolean, stopMs: number): Children {
  const running = new Set<Child>();
  let isStopping = false;
  let exitCode = 0;

  function signal(name: NodeJS.Signals, which: (child: Child) => boolean = () => true): void {
    for (const child of running) if (which(child)) child.process.kill(name);
  }

  function onEnd(child: Child, code: number | null, by: NodeJS.Signals | null): void {
    running.delete(child);
    // One that has just begun to start does not know the signal yet.
    if (code !== 0 && by !== 'SIGTERM') exitCode = 1;
    if (isStopping) return;
    exitCode = 1;
    process.stderr.write(`frontdesk: the process of ${child.name} has ended, so all stop\n`);
    stop();
  }

  function stop(): void {
    if (isStopping) return;
    isStopping = true;
    const endsAtMs = performance.now() + stopMs;
    const gateway = [...running].find(({ name }) => name === 'gateway');
    gateway?.process.kill('SIGTERM');
    killLater(stopMs, (child) => child === gateway);
    void Promise.resolve(gateway?.ended).then(() => {
      const withinMs = Math.max(0, endsAtMs - performance.now());
      const options: CloseOptions = { withinMs };
      // One that is about to end may not take it any more.
      for (const child of running) if (child.isReady) child.process.send(options, () => {});
      signal('SIGTERM', ({ isReady }) => !isReady);
      killLater(withinMs);
    });
  }

  /** One that hangs would keep the others, or this process, from ending. */
  function killLater(stopMs: number, which: (child: Child) => boolean = () => true): void {
    setTimeout(() => {
      for (const child of running) {
        if (!which(child)) continue;
        process.stderr.write(`frontdesk: the process of ${child.name} did not stop in time, and is killed\n`);
        child.process.kill('SIGKILL');
      }
    }, stopMs + lastStepsMs).unref();
  }

  return {
    reload: () => signal('SIGHUP', ({ isReady }) => isReady),
    stop,
    kill: () => signal('SIGKILL'),
    async start(name, env) {
      if (isStopping) throw new Error('it stops already');
      // Detached: Ctrl-C in a terminal reaches only this process, which stops the others in order.
      const child = fork(process.argv[1] ?? '', ['serve', '--only', name, ...(demo ? ['--demo'] : []), '--child'], {
        env: { ...env },
        detached: true,
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      });
      const ended = once(child, 'exit').then(([code, by]) => onEnd(member, code, by));
      const member: Child = { name, process: child, ended, isReady: false };
      running.add(member);
      const [report] = await Promise.race([once(child, 'message'), ended.then(() => Promise.reject(new Error(name)))]);
      member.isReady = true;
      return report;
    },
    async ended() {
      while (running.size > 0) await Promise.all([...running].map((child) => child.ended));
      return exitCode;
    },
  };
}
