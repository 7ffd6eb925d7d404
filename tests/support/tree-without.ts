// A copy of the program in which packages are really missing, as after `npm ci --omit=optional`.

import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Scope, tempDir } from './temp-dir.ts'

/**
 * @param left names of packages or scopes (`@chdb`) to leave out. The others are links, so that their own dependencies
 * are found at the original place.
 * @returns the root of the copy.
 */
export function treeWithout(t: Scope, left: readonly string[]): string {
  const root = tempDir(t)
  for (const name of ['bin', 'src', 'package.json', 'README.md']) cpSync(name, join(root, name), { recursive: true })
  link('node_modules')
  return root

  function link(folder: string): void {
    mkdirSync(join(root, folder))
    for (const entry of readdirSync(folder)) {
      const path = `${folder}/${entry}`
      const name = path.slice('node_modules/'.length)
      if (entry === '.cache' || left.includes(name)) continue
      if (left.some(each => each.startsWith(`${name}/`))) link(path)
      else symlinkSync(resolve(path), join(root, path))
    }
  }
}

/** Runs a command of the copy, with an empty data folder. */
export function runInTree(t: Scope, tree: string, command: string): SpawnSyncReturns<string> {
  const env = { PATH: process.env.PATH, PORT: '0', PENNON_DATA: tempDir(t) }
  return spawnSync(process.execPath, ['src/main.ts', command], { cwd: tree, env, encoding: 'utf8' })
}
