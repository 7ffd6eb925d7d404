import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { tempDir } from '../support/temp-dir.ts'

/** Unpacks one of the data folders in this directory. @returns its path. */
export function unpackedFolder(t: TestContext, name: 'baseline' | 'refused-0.1.0'): string {
  const folder = tempDir(t)
  execFileSync('tar', ['xzf', join(import.meta.dirname, `${name}.tar.gz`), '-C', folder])
  return folder
}
