// Runs the commands of docs/import.md as printed and in order.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { divideIntoWindows } from '#importer/fetch/fetch-windows.ts'
import { startAmplitude, startMixpanel } from '../support/export-stand-in.ts'
import { fetchSecrets } from '../support/fetching.ts'
import { type Pennon, startPennonFor, testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { tempDir } from '../support/temp-dir.ts'
import { commandsOf, guideShell } from './guide-commands.ts'

const page = 'docs/import.md'
const keys = { PENNON_PROJECT_KEY: testProjectKey, PENNON_PERSONAL_KEY: testPersonalKey }
const days = divideIntoWindows({ from: '2024-05-01', to: '2024-05-31' }, 1).map(window => window.from)

it('the commands of the guide work as written: they fetch exports, publish the imports, and undo them', async t => {
  const pennon = await startPennonFor(t)
  const mixpanel = await startMixpanel({
    lines: new Map(
      days.map(day => [
        day,
        [0, 1, 2].map(n => {
          const time = Date.parse(day) / 1_000 + n
          return `{"event":"Ordered","properties":{"time":${time},"distinct_id":"u-${n}","$insert_id":"${day}-${n}"}}`
        }),
      ]),
    ),
  })
  const amplitude = await startAmplitude({ lines: new Map([['20240501T03', ['{"event_type":"x"}']]]) })
  t.after(() => Promise.all([mixpanel.stop(), amplitude.stop()]))
  const { run } = guideShell(
    tempDir(t),
    { ...fetchSecrets, ...keys },
    {
      mixpanel: `--host ${mixpanel.url}`,
      amplitude: `--host ${amplitude.url}`,
    },
  )
  const outputs: string[] = []
  // `fetch-s3.nightly.ts` runs the commands for buckets.
  const commands = commandsOf(page).filter(command => !command.includes('s3://'))
  for (const command of commands) {
    outputs.push(await run(command.replace('http://127.0.0.1:8000', pennon.url)))
    if (command.includes('import publish sample')) assert.equal((await eventsOf(pennon)).length, 5)
    if (command.includes('import publish history')) assert.equal((await eventsOf(pennon)).length, 93)
  }
  assert.equal((await eventsOf(pennon)).length, 0)
  const outputOf = (part: string, nth = 0) =>
    outputs[commands.flatMap((command, index) => (command.includes(part) ? index : []))[nth]!]!
  assert.match(outputOf('--to 2024-07-31 --dry-run'), /^92 parts.*\n92 calls or more, at least 92 min by the limits/)
  assert.match(
    outputOf('--to 2024-05-31'),
    /^31 parts, .* are in .*history\/raw\.\nNext: pennon import plan history \(/,
  )
  assert.equal(outputOf('ls history/raw').split('\n')[0], 'mixpanel-2024-05-01.jsonl.gz')
  assert.match(outputOf('head -1'), /^\{"event":"Ordered".*\}\n$/)
  assert.match(outputs[commands.indexOf('pennon import fetch history\n')]!, /^31 parts/)
  assert.equal(outputOf('import convert').match(/^\{"events":\[/gm)!.length, 2)
  assert.match(outputOf('--source amplitude'), /^1 parts?, .*; the source has no data for 6 more\.\nNext: /)
  assert.match(outputOf('--source matomo'), /^366 parts/)
  assert.match(outputOf('--source posthog'), /^366 parts/)
  assert.match(
    outputOf('import run history'),
    /^93 records: 93 produce events.*\n93 events would be sent and 0 charged/,
  )
  assert.match(outputOf('import report history'), /Records read +93\n/)
  assert.equal(outputOf('import rejects history'), 'No records are rejected.\n')
  assert.match(outputOf('import report history', 1), /The stored events match the sent ones:/)
  assert.match(outputOf('import publish history'), /^Published/m)
  // Files that were kept were not fetched again.
  assert.equal(mixpanel.asked.length, 31)
})

async function eventsOf(pennon: Pennon): Promise<readonly unknown[]> {
  return (await pennon.api<{ results: unknown[] }>('GET', '/api/projects/@current/events/?limit=1000')).results
}
