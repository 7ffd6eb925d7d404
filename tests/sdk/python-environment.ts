// Python environments with published packages, one version each.

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** Packages to install with a version: with the newest, PostHog's own provider for OpenFeature. */
const companions: Readonly<Record<string, readonly string[]>> = { '7.91.1': ['openfeature-provider-posthog==0.1.125'] }

/** The interpreter of a virtual environment with that version of PostHog's SDK. */
export function pythonWith(version: string): string {
  const others = companions[version] ?? []
  return pythonWithPackages(['posthog-python', version, ...others].join('-'), [`posthog==${version}`, ...others])
}

/**
 * The interpreter of a virtual environment with these packages, which is created if it does not exist.
 * @param name of its folder; has to name the versions, too.
 */
export function pythonWithPackages(name: string, packages: readonly string[]): string {
  const folder = join(homedir(), '.cache', 'pennon-test', name)
  const python = join(folder, 'bin', 'python')
  if (existsSync(python)) return python
  mkdirSync(join(folder, '..'), { recursive: true })
  try {
    execFileSync('python3', ['-m', 'venv', folder], { stdio: 'pipe' })
    execFileSync(python, ['-m', 'pip', 'install', '--quiet', ...packages], { stdio: 'pipe', timeout: 120_000 })
  } catch (cause) {
    rmSync(folder, { recursive: true, force: true }) // half of one would pass for a whole one
    throw new Error(
      `no virtual environment with ${packages.join(', ')} (python3, its venv module and pip are needed)`,
      {
        cause,
      },
    )
  }
  return python
}
