// Jars that tests run, downloaded once by Maven into the cache of `node_modules`. `.ci/run` downloads them before the
// tests.

import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'

const cacheFolder = resolve('node_modules/.cache/jars')

/** @param artifact in Maven's notation: `group:artifact:version:jar:classifier`. @returns the path of the jar. */
export function mavenJar(artifact: string): string {
  const path = jarPath(artifact)
  if (!existsSync(path))
    execFileSync('mvn', ['-q', '-B', 'dependency:copy', `-Dartifact=${artifact}`, `-DoutputDirectory=${cacheFolder}`], {
      timeout: 600_000,
    })
  return path
}

/** The reason why the jar cannot run on this machine, or false. @param needs programs required besides the jar. */
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
