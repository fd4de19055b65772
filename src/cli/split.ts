/** The `split` command: runs each module in a separate process, and stops them together (`npm run start:split`). */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { delayMsMax } from '#foundation';
import type { CloseOptions } from '#server';
import type { ModuleName } from '#server/product';
import { type ChildReport, formatAddresses, formatExamples, stopNotice } from './serve.ts';
import { onStopSignals } from './stop-signals.ts';
import { colours, print } from './terminal.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export interface SplitOptions {
  readonly modules: readonly ModuleName[];
  readonly demo: boolean;
  /** How long a graceful shutdown may take, over all modules together. */
  readonly stopMs: number;
}

/**
 * Runs the modules, all with the same records, until a signal arrives or one of the processes exits. Resolves to the
 * exit code when all of them have exited.
 */
export async function split(env: Environment, { modules, demo, stopMs }: SplitOptions): Promise<number> {
  const children = createChildren(demo, stopMs);
  const services = modules.filter((name) => name !== 'gateway');
  let isSecond = false;
  const stop = (signal: NodeJS.Signals) => {
    process.stdout.write(stopNotice(signal));
    if (isSecond) children.kill();
    else children.stop();
    isSecond = true;
  };
  onStopSignals(stop);
  process.on('SIGHUP', children.reload);
  try {
    const reports = await Promise.all(services.map((name) => children.start(name, serviceEnvironment(name, env))));
    const found = new Map(services.map((name, index) => [name, reports[index]] as const));
    const gateway = await children.start('gateway', gatewayEnvironment(env, found, demo));
    print(process.stdout, banner(gateway, found, demo), colours.start);
  } catch {
    // The child has printed why it could not start, and has exited.
    children.stop();
  }
  return children.ended();
}

/** Settings of the process that clients connect to. In services they would have side effects, such as a taken port. */
const gatewayOnly = [
  'HOST',
  'PORT',
  'ADMIN_PORT',
  'TLS_CERT',
  'TLS_KEY',
  'TLS_DIR',
  'TLS_PORT',
  'TLS_CLIENT_CA',
  'TLS_CLIENT_AUTH',
  'HTTP_REDIRECT_PORT',
  'CORS_ORIGINS',
  'SERVICE_ADDRESSES',
  'DRAIN_MS',
];

/** Services listen on loopback, and trust what the gateway there says about the client's address. */
function serviceEnvironment(name: ModuleName, env: Environment): Environment {
  const isShared = (key: string) =>
    !gatewayOnly.includes(key) && (key !== 'RATELIMIT_HTTP_PORT' || name === 'ratelimit');
  const shared = Object.entries(env).filter(([key]) => isShared(key));
  const TRUSTED_PROXIES = ['127.0.0.1', ...(env['TRUSTED_PROXIES'] ? [env['TRUSTED_PROXIES']] : [])].join();
  return { ...Object.fromEntries(shared), PORT: '0', TRUSTED_PROXIES };
}

type Reports = ReadonlyMap<ModuleName, ChildReport | undefined>;

/** The demo sets ADMIN_USERS, because roles in users.yaml do not count when another process is the auth service. */
function gatewayEnvironment(env: Environment, reports: Reports, demo: boolean): Environment {
  const found = [...reports].map(([name, report]) => `${name}=${new URL(urlOf(report)).host}`);
  const SERVICE_ADDRESSES = [...found, ...(env['SERVICE_ADDRESSES'] ? [env['SERVICE_ADDRESSES']] : [])].join();
  return { ...(demo && { ADMIN_USERS: 'demo' }), ...env, SERVICE_ADDRESSES };
}

/** The address at which the gateway reaches the module of a child. */
function urlOf(report: ChildReport | undefined): string {
  const { gateway, auth, ratelimit } = report?.listeners ?? {};
  return (gateway ?? auth ?? ratelimit)?.url ?? '';
}

function banner({ listeners, demoUsers }: ChildReport, reports: Reports, demo: boolean): string {
  const { gateway, gatewayTls, redirect, admin } = listeners;
  const { auth, ratelimit, ...others } = Object.fromEntries(reports);
  const http = Object.entries(others).map(([name, report]) => [name, report?.listeners.gateway] as const);
  const addresses = {
    gateway,
    'gateway (HTTPS)': gatewayTls,
    'redirect to HTTPS': redirect,
    'rate limits': ratelimit?.listeners.ratelimit,
    'rate limits (HTTP)': ratelimit?.listeners.ratelimitHttp,
    auth: auth?.listeners.auth,
    admin,
    ...Object.fromEntries(http),
  };
  return `${formatAddresses(addresses)}${demo && demoUsers.includes('demo') ? formatExamples(gateway?.url ?? '') : ''}\n`;
}

interface Children {
  /** Resolves when the child listens. Rejects when it exits before that. */
  readonly start: (name: ModuleName, env: Environment) => Promise<ChildReport>;
  /**
   * Makes the children that are ready reload. A child that is still starting reads the current files anyway, and the
   * signal could end it.
   */
  readonly reload: () => void;
  /**
   * Stops the gateway first, so that its services respond until its last request has finished. The services get the
   * remaining time. Kills a process that does not stop in time. A second call does nothing.
   */
  readonly stop: () => void;
  /** Ends all children immediately. */
  readonly kill: () => void;
  /** Resolves when all children have exited: to 0 when they were stopped and none failed, otherwise to 1. */
  readonly ended: () => Promise<number>;
}

interface Child {
  readonly name: ModuleName;
  readonly process: ChildProcess;
  readonly ended: Promise<void>;
  isReady: boolean;
}

/** How long a process may take after its last request to close its database and to write the end of its log. */
const lastStepsMs = 3000;

function createChildren(demo: boolean, stopMs: number): Children {
  const running = new Set<Child>();
  let isStopping = false;
  let exitCode = 0;

  function signal(name: NodeJS.Signals, which: (child: Child) => boolean = () => true): void {
    for (const child of running) if (which(child)) child.process.kill(name);
  }

  function onEnd(child: Child, code: number | null, killedBy: NodeJS.Signals | null): void {
    running.delete(child);
    // SIGTERM ends a child that has just been forked and does not handle it yet.
    if (code !== 0 && killedBy !== 'SIGTERM') exitCode = 1;
    if (isStopping) return;
    exitCode = 1;
    // SIGKILL may come from the system when it runs out of memory.
    const end = killedBy === null ? `has exited with code ${code}` : `was killed by ${killedBy}`;
    process.stderr.write(`frontdesk: the ${child.name} process ${end}, stopping the others\n`);
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
      // The callback ignores errors: a child that is about to exit may not receive the message.
      for (const child of running) if (child.isReady) child.process.send(options, () => {});
      signal('SIGTERM', ({ isReady }) => !isReady);
      killLater(withinMs);
    });
  }

  /** Kills children that hang, because they would keep the others and this process from ending. */
  function killLater(stopMs: number, which: (child: Child) => boolean = () => true): void {
    const killAfterMs = Math.min(stopMs + lastStepsMs, delayMsMax);
    setTimeout(() => {
      for (const child of running) {
        if (!which(child)) continue;
        process.stderr.write(`frontdesk: the ${child.name} process did not stop in time, killing it\n`);
        child.process.kill('SIGKILL');
      }
    }, killAfterMs).unref();
  }

  return {
    reload: () => signal('SIGHUP', ({ isReady }) => isReady),
    stop,
    kill: () => signal('SIGKILL'),
    async start(name, env) {
      if (isStopping) throw new Error('already stopping');
      // Detached, so that Ctrl-C in a terminal reaches only this process, which stops the others in order.
      const forked = fork(process.argv[1] ?? '', ['serve', '--only', name, ...(demo ? ['--demo'] : []), '--child'], {
        env: { ...env },
        detached: true,
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      });
      const ended = once(forked, 'exit').then(([code, killedBy]) => onEnd(child, code, killedBy));
      const child: Child = { name, process: forked, ended, isReady: false };
      running.add(child);
      const [report] = await Promise.race([once(forked, 'message'), ended.then(() => Promise.reject(new Error(name)))]);
      child.isReady = true;
      return report;
    },
    async ended() {
      while (running.size > 0) await Promise.all([...running].map((child) => child.ended));
      return exitCode;
    },
  };
}
