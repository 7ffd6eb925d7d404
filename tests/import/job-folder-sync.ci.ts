// What a job file survives in a power failure, as seen by the kernel: its content is synced before the rename, and its
// folder after it.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { hasStrace } from '../support/strace.ts'
import { tempDir } from '../support/temp-dir.ts'

it('a file of a job is synced, then renamed, and then its folder is synced', t => {
  if (!hasStrace()) return t.skip('strace is not installed: apt-get install strace')
  const folder = tempDir(t)
  const trace = join(folder, 'trace')
  const program = `
    const { JobFolder } = await import('#importer/job/job-folder.ts')
    new JobFolder(${JSON.stringify(join(folder, 'job'))}).writeJson('progress.json', { v: 1 })`
  const node = [process.execPath, '--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', program]
  execFileSync('strace', ['-f', '-y', '-e', 'trace=fsync,rename,renameat,renameat2', '-o', trace, ...node])
  const calls = readFileSync(trace, 'utf8')
    .split('\n')
    .filter(line => line.includes('/job'))
    .map(line => /(fsync|rename)\w*\(.*?(\/job[^>"]*)[>"]/.exec(line)?.slice(1).join(' '))
  assert.deepEqual(calls, ['fsync /job/progress.json.next', 'rename /job/progress.json.next', 'fsync /job'])
})
