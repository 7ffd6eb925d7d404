import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { after, before, it } from 'node:test'
import { type Pennon, startPennon, testPersonalKey, testProjectKey } from './support/pennon.ts'

interface Answer {
  featureFlags?: Record<string, unknown>
  featureFlagPayloads?: Record<string, unknown>
  results?: unknown
}

// Every command of the README that talks to an instance, run as it stands, in order.

const readme = readFileSync('README.md', 'utf8')

let pennon: Pennon

before(async () => {
  pennon = await startPennon()
})
after(() => pennon.stop())

/** A program of the README, with the address and the key of this instance in the place of the printed ones. */
function program(language: string): string {
  const code = new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(readme)![1]!
  assert.match(code, /http:\/\/127\.0\.0\.1:8000/)
  assert.match(code, /phc_…/)
  return code.replace('http://127.0.0.1:8000', pennon.url).replace('phc_…', testProjectKey)
}

it('the README’s commands work as printed, in order', async () => {
  const commands = [...readme.matchAll(/```sh\n(.*?)```/gs)].map(match => match[1]!)
  assert.ok(commands.length >= 10)
  const env = { ...process.env, PENNON: pennon.url, PROJECT_KEY: testProjectKey, PERSONAL_KEY: testPersonalKey }
  const outputs = new Map<string, string>()
  for (const command of commands) {
    if (/\/(events|persons|usage)\//.test(command)) await pennon.caughtUp()
    const output = execFileSync('bash', ['-c', command], { env, encoding: 'utf8' })
    const answer = JSON.parse(output) as object | string
    assert.ok(typeof answer === 'string' || !('code' in answer), `${command}\n→ ${output}`)
    outputs.set([...command.matchAll(/\$PENNON([^"\s]*)/g)].at(-1)![1]!, output)
  }
  const outputOf = (path: string) => JSON.parse(outputs.get(path)!) as Answer
  assert.equal(outputOf('/decide?v=3').featureFlags?.['new-checkout'], true)
  assert.equal(outputOf('/decide?v=3').featureFlagPayloads?.['new-checkout'], '{"button": "green"}')
  assert.equal(outputs.get('/capture/'), '{"status":"Ok"}')
  assert.equal(outputs.get('/batch/'), '{"status":"Ok"}')
  const inProject = '/api/projects/@current/feature_flags/'
  const explained = outputOf(`${inProject}nordic-prices/explain/`) as { value?: unknown }
  assert.equal(explained.value, true)
  const payload = JSON.parse(outputs.get(`${inProject}limits/remote_config`)!) as string
  assert.deepEqual(JSON.parse(payload), { seats: 50 })
  const restored = outputOf(`${inProject}new-checkout/versions/1/restore/`) as { version?: unknown; active?: unknown }
  assert.deepEqual([restored.version, restored.active], [2, true])
  const copied = outputOf('/api/organizations/@current/feature_flags/copy_flags/') as {
    success?: { key: string; filters: unknown }[]
    failed?: unknown[]
  }
  assert.deepEqual([copied.success?.map(({ key }) => key), copied.failed], [['nordic-prices'], []])
  const events = outputOf('/api/projects/@current/events/?distinct_id=ada').results as {
    event: string
    historical_migration: boolean
  }[]
  assert.deepEqual(events.map(event => event.event).sort(), [
    '$feature_flag_called',
    '$group_identify',
    '$identify',
    '$pageview',
    'order placed',
  ])
  assert.deepEqual(
    events.filter(event => event.historical_migration).map(event => event.event),
    ['$pageview'],
  )
  const [person] = outputOf('/api/projects/@current/persons/?distinct_id=ada').results as {
    properties: Record<string, unknown>
  }[]
  assert.equal(person!.properties.country, 'NO')
  assert.equal(person!.properties.plan, 'pro')
})

it('the README’s program for Node works as printed', async () => {
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', program('js')], { encoding: 'utf8' })
  assert.equal(output, 'new-checkout is true\n')
  await pennon.caughtUp()
  const { results } = await pennon.api<{ results: { properties: Record<string, unknown> }[] }>(
    'GET',
    '/api/projects/@current/events/?distinct_id=ada&event=order%20placed',
  )
  const sent = results.find(({ properties }) => properties.$lib === 'posthog-node')
  assert.equal(sent?.properties['$feature/new-checkout'], true)
  assert.ok(results.every(({ properties }) => properties.price === 1499))
})

it('the README’s program for OpenFeature works as printed', () => {
  const code = program('javascript')
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' })
  assert.equal(output, 'new-checkout is true\n')
})
