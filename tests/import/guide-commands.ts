// Runs the commands of a guide as printed, in a separate folder, with a `pennon` that knows the addresses of the
// stand-ins.

import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

export interface GuideShell {
  /** @throws with the command's output when it fails. */
  run(command: string): Promise<string>
}

/** The commands of a page, in order. */
export function commandsOf(page: string): string[] {
  return [...readFileSync(page, 'utf8').matchAll(/^```sh\n(.*?)^```/gms)].map(match => match[1]!)
}

/** @param added by source: options in place of the reader's accounts and addresses. */
export function guideShell(
  folder: string,
  env: Readonly<Record<string, string>>,
  added: Readonly<Record<string, string>>,
): GuideShell {
  const bin = join(folder, 'bin')
  mkdirSync(bin, { recursive: true })
  const cases = Object.entries(added).map(
    ([source, options]) => `"import fetch"*"--source ${source}"*) set -- "$@" ${options} ;;`,
  )
  const script = ['#!/bin/sh', `case "$*" in *--dry-run* | *convert*) ;; ${cases.join(' ')} esac`]
  const main = resolve('src/main.ts')
  writeFileSync(
    join(bin, 'pennon'),
    `${script.join('\n')}\nexec "${process.execPath}" --disable-warning=ExperimentalWarning "${main}" "$@"\n`,
  )
  chmodSync(join(bin, 'pennon'), 0o755)
  return {
    run: command =>
      new Promise((done, fail) => {
        const settings = { PATH: `${bin}:${process.env.PATH}`, HOME: folder, ...env }
        execFile('bash', ['-c', command], { cwd: folder, env: settings }, (error, stdout, stderr) =>
          error === null ? done(stdout) : fail(new Error(`${command}\n${stdout}\n${stderr}`)),
        )
      }),
  }
}
