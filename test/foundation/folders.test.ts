/** Folders: which are made, and who owns them. */
import assert from 'node:assert/strict';
import { chownSync, existsSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { makeFolders } from '#foundation';
import { temporaryFiles } from '../support/temporary-files.ts';

describe('makeFolders', () => {
  const writeFiles = temporaryFiles();

  it('makes the missing ones with the mode, and reports each, outermost first', async () => {
    const root = await writeFiles({ 'one/file': '' });
    const made: string[] = [];
    const options = { mode: 0o700, onCreated: (folder: string) => void made.push(relative(root, folder)) };
    await makeFolders(join(root, 'one/two/three'), options);
    assert.deepEqual(made, ['one/two', 'one/two/three']);
    assert.equal(statSync(join(root, 'one/two/three')).mode & 0o777, 0o700);
    await makeFolders(join(root, 'one/two'), options);
    assert.equal(made.length, 2);
  });

  it('makes the same folder for several callers at once', async () => {
    const folder = join(await writeFiles({}), 'a/b/c');
    await Promise.all(Array.from({ length: 5 }, () => makeFolders(folder)));
    assert.ok(statSync(folder).isDirectory());
  });

  it('gives new folders the owner of the one that they are in', async function () {
    if (process.getuid?.() !== 0) return this.skip();
    const root = await writeFiles({});
    chownSync(root, 12_345, 12_346);
    await makeFolders(join(root, 'a/b'));
    const { uid, gid } = statSync(join(root, 'a/b'));
    assert.deepEqual([uid, gid], [12_345, 12_346]);
  });

  it('rejects with the code of the system if a folder cannot be made', async function () {
    const root = await writeFiles({});
    writeFileSync(join(root, 'file'), '');
    symlinkSync(join(root, 'nowhere'), join(root, 'link'));
    await assert.rejects(makeFolders(join(root, 'file')), { code: 'EEXIST' });
    await assert.rejects(makeFolders(join(root, 'file/inside')), { code: 'ENOTDIR' });
    await assert.rejects(makeFolders(join(root, 'link')), { code: 'EEXIST' });
    if (!existsSync('/proc')) return this.skip();
    await assert.rejects(makeFolders('/proc/nowhere/deep'), { code: 'ENOENT' });
  });
});
