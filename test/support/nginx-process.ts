/** nginx as one process of whoever runs the tests, with its files in a directory of its own. */
import { isInstalled, type ProxyProgram } from './proxy-process.ts';

export function hasNginx(): boolean {
  return isInstalled('nginx', '-v');
}

const temporaryPaths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

/** What it is given belongs within `http`. */
export const nginx: ProxyProgram = {
  command: 'nginx',
  configure: (recipe, directory) =>
    [
      'daemon off;',
      'master_process off;',
      'error_log stderr;',
      `pid ${directory}/pid;`,
      'events {}',
      'http {',
      'access_log off;',
      ...temporaryPaths.map((name) => `${name}_temp_path ${directory}/${name};`),
      recipe,
      '}',
    ].join('\n'),
  args: (configFile, directory) => ['-e', 'stderr', '-p', directory, '-c', configFile],
};
