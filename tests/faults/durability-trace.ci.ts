import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { eventually } from '../support/eventually.ts'
import { startPennon, testProjectKey } from '../support/pennon.ts'
import { hasStrace } from '../support/strace.ts'
import { tempDir } from '../support/temp-dir.ts'

// Traces every sync and write of all processes of an instance in order, as seen by the kernel, while one event passes.

interface Call {
  readonly seconds: number
  readonly text: string
}

it('the log is synced before the first byte of the 200, and event rows before the committed position', async t => {
  if (!hasStrace()) return t.skip('strace is not installed: apt-get install strace')
  const folder = tempDir(t)
  const tracePath = join(folder, 'trace')
  const dataFolder = join(folder, 'data')
  const launcher = [
    'strace',
    '-f',
    '-y',
    '-ttt',
    '-s',
    '512',
    '-e',
    'trace=fsync,fdatasync,write,writev,sendto,sendmsg',
    '-o',
    tracePath,
  ]
  const pennon = await startPennon({ dataFolder, launcher })
  try {
    await quietState(tracePath)
    const response = await pennon.post('/capture/', {
      api_key: testProjectKey,
      event: 'traced',
      distinct_id: 'trace-me',
      uuid: '0197c5a0-0000-7000-8000-0000000000cc',
    })
    assert.equal(response.status, 200)
    await pennon.caughtUp()
  } finally {
    await pennon.killTree()
  }
  const calls = readCalls(tracePath)
  const answer = calls.find(call => call.text.includes('{\\"status\\":\\"Ok\\"}'))
  assert.ok(answer, 'the trace has the answer')
  const isLogSync = (call: Call) => /f(data)?sync\(.*\/log\/main\//.test(call.text)
  const logSync = calls.findLast(call => isLogSync(call) && call.seconds <= answer.seconds)
  assert.ok(logSync, 'the log was synced before the answer')
  const received = calls.findLast(call => /write.*\/log\/main\//.test(call.text) && call.seconds <= answer.seconds)
  if (received !== undefined)
    assert.ok(logSync.seconds >= received.seconds, 'the sync is the one after the last write of the log')

  const isRowSync = (call: Call) => /f(data)?sync\(.*\/events\/.*store\//.test(call.text)
  const rowSyncs = calls.filter(call => isRowSync(call) && call.seconds > answer.seconds)
  assert.ok(rowSyncs.length > 0, 'the rows were synced after the answer')
  const position = calls.find(call => isStateSync(call) && call.seconds > rowSyncs[0]!.seconds)
  assert.ok(position, 'the position was synced after the rows')
  const early = calls.filter(
    call => isStateSync(call) && call.seconds > answer.seconds && call.seconds < rowSyncs[0]!.seconds,
  )
  assert.deepEqual(early, [], 'nothing of the state was committed between the answer and the rows')
})

/**
 * Waits until the writes of the start (claiming the position, computing usage) are done; later writes belong to the
 * event.
 */
async function quietState(tracePath: string): Promise<void> {
  const quietSeconds = 1.5
  await eventually(
    () => {
      const last = readCalls(tracePath).findLast(isStateSync)
      return Date.now() / 1000 - (last?.seconds ?? 0) > quietSeconds
    },
    { what: 'a quiet state' },
  )
}

function isStateSync(call: Call): boolean {
  return /f(data)?sync\(.*\/state\.db/.test(call.text)
}

/** Calls ordered by their end: an interrupted call counts where it resumed. */
function readCalls(path: string): Call[] {
  const unfinished = new Map<string, string>()
  const calls: Call[] = []
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const match = /^(\d+)\s+([\d.]+) (.*)$/.exec(line)
    if (match === null) continue
    const [, thread, seconds, text] = match as unknown as [string, string, string, string]
    if (text.endsWith('<unfinished ...>')) {
      unfinished.set(thread, text)
      continue
    }
    const resumed = /^<\.\.\. \w+ resumed>/.test(text)
    calls.push({ seconds: Number(seconds), text: resumed ? `${unfinished.get(thread) ?? ''} ${text}` : text })
  }
  return calls
}
