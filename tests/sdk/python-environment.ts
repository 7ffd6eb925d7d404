// Python interpreters with published SDKs of one version each.

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** What is installed with a version: PostHog's own provider for OpenFeature with the newest. */
const companions: Readonly<Record<string, readonly string[]>> = { '7.91.1': ['openfeature-provider-posthog==0.1.125'] }

/** The interpreter of a virtual environment with that version, made when it is not there yet. */
export function pythonWith(version: string): string {
  const others = companions[version] ?? []
  const folder = join(homedir(), '.cache', 'pennon-test', ['posthog-python', version, ...others].join('-'))
  const python = join(folder, 'bin', 'python')
  if (existsSync(python)) return python
  mkdirSync(join(folder, '..'), { recursive: true })
  try {
    execFileSync('python3', ['-m', 'venv', folder], { stdio: 'pipe' })
    execFileSync(python, ['-m', 'pip', 'install', '--quiet', `posthog==${version}`, ...others], {
      stdio: 'pipe',
      timeout: 120_000,
    })
  } catch (cause) {
    rmSync(folder, { recursive: true, force: true }) // half of one would pass for a whole one
    throw new Error(`no virtual environment with posthog ${version} (python3, its venv module and pip are needed)`, {
      cause,
    })
  }
  return python
}
