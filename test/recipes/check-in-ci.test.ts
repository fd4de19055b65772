/** The recipe "Check a configuration in CI": the annotation on the page, and the command in the workflow. */
import assert from 'node:assert/strict';
import { runCommand } from '../support/programs/command.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { parseCommand, readRecipe, readRun } from './page.ts';

describe('the recipe: check a configuration in CI', () => {
  const writeFiles = temporaryFiles();
  const recipe = readRecipe('Check a configuration in CI');
  const { command, output } = readRun(recipe.blocks('console')[0] ?? '');

  it('prints the annotations on the page, and exits with 1', async () => {
    const cwd = await writeFiles(recipe.files);
    const env = { GITHUB_WORKSPACE: cwd };
    const { code, stdout, stderr } = await runCommand(parseCommand(command).args, { cwd, env });
    assert.deepEqual([code, stderr, stdout], [1, '', output]);
  });

  it('runs the same command in the workflow', () => {
    assert.ok(recipe.files['.github/workflows/config.yml']?.endsWith(`- run: ${command}\n`));
  });
});
