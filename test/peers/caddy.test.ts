/** Caddy as the recipe configures it: it calls the auth service with forward_auth. */
import { isInstalled } from '../support/programs/installed.ts';
import { caddy } from '../support/programs/proxy-process.ts';
import { authCallerCases } from './auth-caller.ts';
import { readProxyRecipe } from './recipe.ts';

describe('Caddy in front of a service, with the auth service', () => {
  if (isInstalled('caddy'))
    authCallerCases({ program: caddy, recipe: (ports) => readProxyRecipe('caddyfile', ports), unavailable: 502 });
  else it('needs caddy on the PATH');
});
