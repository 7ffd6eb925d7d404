import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { it } from 'node:test'
import { startPennon, testPersonalKey, testProjectKey } from './support/pennon.ts'
import { startedForTests } from './support/started-for-tests.ts'

interface Answer {
  featureFlags?: Record<string, unknown>
  featureFlagPayloads?: Record<string, unknown>
  flags?: Record<string, { enabled: unknown; metadata?: { payload?: unknown } }>
  results?: unknown
}

// Runs every command of the README and of the guides that talks to an instance, unchanged and in the order of the
// README and then of the list of guides.

const guides = [...readFileSync('docs/guides/README.md', 'utf8').matchAll(/^\| \[([\w-]+\.md)\]/gm)].map(
  ([, name]) => `docs/guides/${name}`,
)
const pages = ['README.md', ...guides]
const textOf = new Map(pages.map(page => [page, readFileSync(page, 'utf8')]))

const pennon = startedForTests(startPennon)

/** A program from a page, with this instance's URL and key in place of the printed ones. */
function program(page: string, language: string): string {
  const code = new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(textOf.get(page)!)![1]!
  assert.match(code, /http:\/\/127\.0\.0\.1:8000/)
  assert.match(code, /phc_…/)
  return code.replace('http://127.0.0.1:8000', pennon.url).replace('phc_…', testProjectKey)
}

it('the README links every guide, and tests run all code of the README and the guides', () => {
  assert.deepEqual(guides.toSorted(), globSync('docs/guides/!(README).md').sort())
  // The programs are run below; `tests/sdk/*.ci.ts` run those for Python and for pages.
  const programs = ['README.md js', 'README.md python', 'README.md html', 'docs/guides/sdks.md javascript']
  // What a reader does in another terminal: `startPennon` replaces `npm start`, and the variables are set below.
  const plain = [
    'npm start\n',
    'export PATH="$PWD/bin:$PATH"\nexport PENNON=http://127.0.0.1:8000\nexport PENNON_PROJECT_KEY=phc_…\nexport PENNON_PERSONAL_KEY=phx_…\n',
  ]
  for (const [page, text] of textOf)
    for (const [, language = '', code = ''] of text.matchAll(/^```(\w*)\n(.*?)^```/gms)) {
      if (language === '') assert.ok(plain.includes(code), `${page}: ${code}`)
      else assert.ok(language === 'sh' || programs.includes(`${page} ${language}`), `${page}: ${language}`)
    }
})

it('lines of the README and the guides fit a screen, except table rows', () => {
  for (const [page, text] of textOf)
    assert.deepEqual(
      text.split('\n').filter(line => line.length > 120 && !line.startsWith('|')),
      [],
      page,
    )
})

it('the commands of the README and the guides work as printed, in order', async () => {
  const commands = [...textOf.values()].flatMap(text => [...text.matchAll(/```sh\n(.*?)```/gs)].map(match => match[1]!))
  assert.ok(commands.length >= 18)
  const env = {
    ...process.env,
    PATH: `${resolve('bin')}:${process.env.PATH}`,
    PENNON: pennon.url,
    PENNON_PROJECT_KEY: testProjectKey,
    PENNON_PERSONAL_KEY: testPersonalKey,
  }
  const outputs = new Map<string, string>()
  for (const command of commands) {
    if (/\/(events|persons|usage)\//.test(command)) await pennon.caughtUp()
    const output = execFileSync('bash', ['-c', command], { env, encoding: 'utf8' })
    const answer = JSON.parse(output) as object | string | number
    assert.ok(typeof answer !== 'object' || !('code' in answer), `${command}\n→ ${output}`)
    outputs.set([...command.matchAll(/\$PENNON(?!_)([^"\s]*)/g)].at(-1)?.[1] ?? command, output)
  }
  const outputOf = (path: string) => JSON.parse(outputs.get(path)!) as Answer
  const { flags } = outputOf('/flags?v=2')
  assert.deepEqual(
    [flags?.['new-checkout']?.enabled, flags?.['new-checkout']?.metadata?.payload],
    [true, '{"button": "green"}'],
  )
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
  assert.deepEqual([restored.version, restored.active], [1, true], 'it is at that version already')
  const copied = outputOf('/api/organizations/@current/feature_flags/copy_flags/') as {
    success?: { key: string; filters: unknown }[]
    failed?: unknown[]
  }
  assert.deepEqual([copied.success?.map(({ key }) => key), copied.failed], [['nordic-prices'], []])
  const [pageRead] = outputOf('/api/projects/@current/events/?event=page+read').results as {
    distinct_id: string
    properties: Record<string, unknown>
  }[]
  assert.match(pageRead!.distinct_id, /^cookieless_[\w+/]{22}$/)
  assert.deepEqual([pageRead!.properties.$ip, pageRead!.properties.$raw_user_agent], [undefined, undefined])
  const erasedPath = '/api/projects/@current/persons/$GRACE/?delete_events=true'
  assert.equal(outputs.get(erasedPath), '202\n')
  const erasures = outputOf('/api/projects/@current/persons/deletion_status/').results as { erasure: object }[]
  assert.equal(erasures.length, 1, 'no person has the ids of the second request any more')
  const { results: events } = await pennon.api<{ results: { event: string; historical_migration: boolean }[] }>(
    'GET',
    '/api/projects/@current/events/?distinct_id=ada',
  )
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
  const code = program('README.md', 'js')
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' })
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

it('the guide’s program for OpenFeature works as printed', () => {
  const code = program('docs/guides/sdks.md', 'javascript')
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' })
  assert.equal(output, 'new-checkout is true\n')
})
