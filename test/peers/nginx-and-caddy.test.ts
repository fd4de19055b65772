/** nginx and Caddy as the recipe configures them: they call the auth service with auth_request and forward_auth. */
import { readRecipe } from '../recipes/page.ts';
import { describeWith } from '../support/programs/installed.ts';
import { caddy, nginx } from '../support/programs/proxy-process.ts';
import { onPorts } from '../support/programs/shell-story.ts';
import { authCallerCases } from './auth-caller.ts';

const { blocks } = readRecipe('Use authentication from nginx or Caddy');

for (const [name, program, language, unavailable] of [
  ['nginx', nginx, 'nginx', 503],
  ['Caddy', caddy, 'caddyfile', 502],
] as const)
  describeWith(program.command, `${name} in front of a service, with the auth service`, () => {
    const [text = ''] = blocks(language);
    authCallerCases({
      program,
      recipe: ({ proxy, auth, upstream }) => onPorts(text, { 8000: proxy, 8082: auth, 9000: upstream }, ':'),
      unavailable,
    });
  });
