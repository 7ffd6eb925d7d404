// Texts that no store keeps unchanged, numbers beyond the precision of a double, and names and properties with a
// special meaning to the service. What the service makes of them is no difference for verification.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { ImportReport } from '#importer/stages/report/import-report.ts'
import { ImportCommands, mapping } from '../support/import-command.ts'
import { startPennonFor, testPersonalKey } from '../support/pennon.ts'
import { tempDir } from '../support/temp-dir.ts'

const base = { event: 'Paid', user: 'u-1', at: '2024-05-01T12:00:00Z' }
const group = { $group_type: 'company', $group_key: 'acme', $group_set: { size: 5 } }
const records: readonly string[] = [
  JSON.stringify({ ...base, user: 'a\0b' }),
  JSON.stringify({ ...base, user: 'a\ud800b' }),
  JSON.stringify({ ...base, user: '\u{1f600}'.repeat(100) }),
  JSON.stringify({ ...base, event: 'a\0b' }),
  JSON.stringify({ ...base, event: 'a\ud800b' }),
  JSON.stringify({ ...base, event: '$group_identify', props: group }),
  JSON.stringify({ ...base, event: '$exception', props: { $exception_list: [] } }),
  JSON.stringify({
    ...base,
    props: { text: 'a\0b', lone: 'a\ud800b', 'ke\0y': 1, list: ['\0'], deep: { a: '\udc00' } },
  }),
  `{"event":"Paid","user":"u-1","at":"2024-05-01T12:00:00Z","props":{"big":12345678901234567890,"one":1.0,"huge":1e400,"small":1e-7,"minus":-0,"long":0.1000000000000000055}}`,
  JSON.stringify({
    ...base,
    props: { __proto__x: 1, constructor: 2, '': 3, $ip: 'x', timestamp: 'y', uuid: 'z', token: 't' },
  }),
  JSON.stringify({
    ...base,
    props: { $browser: 'Chrome', $os: 'iOS', $set: { a: 1 }, $set_once: { b: 2 }, utm_source: 'y' },
  }),
  JSON.stringify({
    ...base,
    props: { $session_id: '018F3A10-0000-7000-8000-000000000701', $ip: '192.0.2.1', $os_name: 'x' },
  }),
  JSON.stringify({ ...base, props: { $process_person_profile: true } }),
  JSON.stringify({ ...base, props: { $process_person_profile: false, $group_0: 'x', $set: { a: 1 } } }),
  JSON.stringify({ ...base, event: '$autocapture', props: { $elements: [{ tag_name: 'a', $el_text: 'x' }] } }),
  JSON.stringify({ ...base, event: '$ai_generation', props: { $ai_gateway_x: 1 } }),
  ...[1, 2].map(n =>
    JSON.stringify({
      ...base,
      event: '$feature_flag_called',
      props: { $feature_flag: 'a', $feature_flag_response: true, n },
    }),
  ),
]

it('verification accepts odd texts, numbers and names as stored correctly', async t => {
  const pennon = await startPennonFor(t)
  const commands = new ImportCommands(tempDir(t), { PENNON_PERSONAL_KEY: testPersonalKey })
  const rules = commands.file('mapping.json', JSON.stringify({ ...mapping, uuid: undefined }))
  const raw = commands.file(
    'raw.jsonl',
    records.map((record, index) => `${record.slice(0, -1)},"n":${index}}\n`).join(''),
  )
  await commands.approved(pennon, [raw], '--source', 'generic', '--mapping', rules)
  await pennon.api('PATCH', '/api/projects/@current/', { anonymize_ips: true })
  const sent = await commands.call('run', '--json')
  const { verification, balance } = (JSON.parse(sent.stdout) as ImportReport).sent!
  assert.deepEqual(
    verification!.checks.flatMap(({ differences }) => differences),
    [],
  )
  assert.equal(balance.sent, records.length, (await commands.call('rejects')).stdout)
})
