/** Adds what to type instead to the usage errors of commander, and leaves out arguments that may be secret. */
import { suggestion, variables } from '#config';
import { settingTable } from '#server/product';

/** `text` is an error of commander. `args` are the arguments of its command, without options. */
export function improveError(text: string, args: readonly string[]): string {
  return withoutArguments(withSetting(withMethod(text, args)));
}

/** Surplus arguments may contain a password. */
function withoutArguments(text: string): string {
  return text.replace(
    /^(error: too many arguments(?: for '([\w-]+)')?)\. Expected \d+ .* but got \d+: .*$/s,
    (_, error: string, command: string) =>
      `${error}${command === 'serve' || command === 'split' ? `: ${useDirectory(command)}` : ''}\n`,
  );
}

function useDirectory(command: string): string {
  return `it uses ./config, or the directory in CONFIG_DIR, as in CONFIG_DIR=./other frontdesk ${command}`;
}

/** Names the setting of a server that was typed as an option. The value may be a password too. */
function withSetting(text: string): string {
  return text.replace(
    /^(error: unknown option '(-[^'=]*)).*?'(?=\n\(Did you mean |\s*$)/s,
    (_, error: string, option: string) => {
      const name = option.replace(/^-+/, '').replaceAll('-', '_').toUpperCase();
      const setting = suggestion(
        name,
        variables(settingTable).map(([variable]) => variable),
      );
      return `${error}'${setting === undefined ? '' : `: set ${setting} in the environment or in settings.env`}`;
    },
  );
}

/** For `explain /orders`. */
function withMethod(text: string, [first = '']: readonly string[]): string {
  const [path = ''] = first.split(/[?#]/);
  const shown = /^\/[\w./%-]*$/.test(path) ? path : '/orders';
  return /^(?:\/|https?:)/.test(first)
    ? text.replace(
        /^error: missing required argument 'url'/,
        `error: the method is missing: frontdesk explain GET ${shown}`,
      )
    : text;
}
