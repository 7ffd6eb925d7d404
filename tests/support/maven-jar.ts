// Jars that tests run, which Maven brings once into the cache of `node_modules`. `.ci/run` brings them before the tests.

import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'

const cacheFolder = resolve('node_modules/.cache/jars')

/** @param artifact as Maven names it: `group:artifact:version:jar:classifier`. @returns the path of the jar. */
export function mavenJar(artifact: string): string {
  const path = jarPath(artifact)
  if (!existsSync(path))
    execFileSync('mvn', ['-q', '-B', 'dependency:copy', `-Dartifact=${artifact}`, `-DoutputDirectory=${cacheFolder}`], {
      timeout: 600_000,
    })
  return path
}

/** Why the jar cannot be run on this machine; false when it can. @param needs programs beside it. */
export function jarMissing(artifact: string, ...needs: string[]): string | false {
  const missing = [...needs, ...(existsSync(jarPath(artifact)) ? [] : ['mvn'])].filter(program => !isThere(program))
  return missing.length > 0 && `needs ${missing.join(' and ')}`
}

function jarPath(artifact: string): string {
  const [, name, version, , classifier] = artifact.split(':')
  return join(cacheFolder, `${name}-${version}-${classifier}.jar`)
}

function isThere(program: string): boolean {
  try {
    execFileSync(program, ['-version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
