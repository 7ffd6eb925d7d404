// Loaded into the process of each test file before the file itself: ends the process if it outlives its tests.
// Otherwise a child, a server or a thread that a test left behind would keep it, and the whole run, alive until the
// run's own timeout.

import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, beforeEach } from 'node:test'
import { cpuSuffix, outliveGraceMs } from './outlived-children.ts'
import { isTestFile } from './untracked-promises.ts'

if (isTestFile) {
  const file = process.argv[1] ?? 'a test file'
  const folder = process.env.TESTS_RUN
  if (folder !== undefined && process.platform === 'linux')
    process.on('exit', () => writeFileSync(join(folder, `${process.pid}${cpuSuffix}`), `${cpuMs()} ${file}`))
  process.env.TESTS_PROCESS = String(process.pid)
  process.env.TESTS_FILE = file
  let deadline: NodeJS.Timeout | undefined
  // `after` runs when all known tests have ended; files that run together may still add more.
  beforeEach(() => clearTimeout(deadline))
  after(() => {
    deadline = setTimeout(() => {
      const resources = [...new Set(process.getActiveResourcesInfo())].join(', ')
      console.error(
        `${file}: its tests have ended, but something that they started keeps its process alive: ${resources}.`,
      )
      console.error(`Children of it: ${childrenText() || 'none'}`)
      process.exit(1)
    }, outliveGraceMs).unref()
  })
}

/** CPU time of this process and of its children that have ended, user and system, in ms. */
function cpuMs(): number {
  const ticks = readFileSync('/proc/self/stat', 'latin1').split(') ').at(-1)!.split(' ').slice(11, 15).map(Number)
  return 10 * ticks.reduce((sum, each) => sum + each)
}

/** Lists the children. The run itself kills them once this process is gone. */
function childrenText(): string {
  const { stdout } = spawnSync('ps', ['--ppid', String(process.pid), '-o', 'pid=,args='], { encoding: 'utf8' })
  return (stdout ?? '')
    .split('\n')
    .filter(line => line !== '' && !line.includes('ps --ppid'))
    .join('; ')
}
