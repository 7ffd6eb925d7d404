// Folders with published npm packages, for tools that are not development dependencies because they need a hundred
// packages or a separate TypeScript (docs/decisions/0035-tools-in-folders-of-their-own.md).

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/**
 * The folder whose `node_modules` has these packages (`name@version`); installs them once, without running their
 * scripts.
 */
export function npmFolderWith(...packages: readonly string[]): string {
  const folder = join(homedir(), '.cache', 'pennon-test', `npm-${packages.join('_').replaceAll(/[@/]+/g, '-')}`)
  if (existsSync(folder)) return folder
  const half = `${folder}.${process.pid}` // a partial installation would pass for a complete one
  mkdirSync(half, { recursive: true })
  try {
    writeFileSync(join(half, 'package.json'), '{"private": true}')
    const quiet = ['--ignore-scripts', '--legacy-peer-deps', '--no-audit', '--no-fund', '--save-exact']
    execFileSync('npm', ['install', ...quiet, ...packages], { cwd: half, stdio: 'pipe', timeout: 240_000 })
    renameSync(half, folder)
  } catch (cause) {
    rmSync(half, { recursive: true, force: true })
    if (!existsSync(folder)) throw new Error(`npm could not install ${packages.join(', ')}`, { cause })
  }
  return folder
}
