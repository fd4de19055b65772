/** Caddy without its administration, its certificates and its memory of earlier runs. */
import { isInstalled, type ProxyProgram } from './proxy-process.ts';

export function hasCaddy(): boolean {
  return isInstalled('caddy', 'version');
}

/** What it is given is a site. */
export const caddy: ProxyProgram = {
  command: 'caddy',
  configure: (recipe, directory) =>
    ['{', 'admin off', 'auto_https off', `storage file_system ${directory}`, '}', recipe].join('\n'),
  args: (configFile) => ['run', '--config', configFile, '--adapter', 'caddyfile'],
};
