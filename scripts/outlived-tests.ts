// Loaded into the process of each test file, before the file: ends the process when it outlives its tests. A child, a server
// or a thread that a test left behind would otherwise keep it, and with it the whole run, until the run's own time is over.

import { spawnSync } from 'node:child_process'
import { after, beforeEach } from 'node:test'
import { isMainThread } from 'node:worker_threads'
import { outliveGraceMs } from './outlived-children.ts'

// Not in what tests start themselves: those have the number of their test file's process from their start.
const isTestFile =
  isMainThread && process.env.NODE_TEST_CONTEXT === 'child-v8' && process.env.TESTS_PROCESS === undefined

if (isTestFile) {
  const file = process.argv[1] ?? 'a test file'
  process.env.TESTS_PROCESS = String(process.pid)
  process.env.TESTS_FILE = file
  let deadline: NodeJS.Timeout | undefined
  // The hook runs when all tests that are known are over; files that run together may still bring more.
  beforeEach(() => clearTimeout(deadline))
  after(() => {
    deadline = setTimeout(() => {
      const resources = [...new Set(process.getActiveResourcesInfo())].join(', ')
      console.error(`${file}: its tests are over, but something that they started keeps its process: ${resources}.`)
      console.error(`Children of it: ${childrenText() || 'none'}`)
      process.exit(1)
    }, outliveGraceMs).unref()
  })
}

/** Children are ended by the run itself once this process is gone. */
function childrenText(): string {
  const { stdout } = spawnSync('ps', ['--ppid', String(process.pid), '-o', 'pid=,args='], { encoding: 'utf8' })
  return (stdout ?? '')
    .split('\n')
    .filter(line => line !== '' && !line.includes('ps --ppid'))
    .join('; ')
}
