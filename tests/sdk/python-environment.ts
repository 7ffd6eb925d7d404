// Python environments with published packages, one version each.

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
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
  // Test files run at the same time: half of an environment would pass for a whole one.
  const half = `${folder}.${process.pid}`
  mkdirSync(half, { recursive: true })
  try {
    execFileSync('python3', ['-m', 'venv', half], { stdio: 'pipe' })
    const install = ['-m', 'pip', 'install', '--quiet', ...packages]
    execFileSync(join(half, 'bin', 'python'), install, { stdio: 'pipe', timeout: 120_000 })
    renameSync(half, folder)
  } catch (cause) {
    rmSync(half, { recursive: true, force: true })
    if (!existsSync(python)) throw new Error(missing(packages), { cause })
  }
  return python
}

function missing(packages: readonly string[]): string {
  return `no virtual environment with ${packages.join(', ')} (python3, its venv module and pip are needed)`
}
