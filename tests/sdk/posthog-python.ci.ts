import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { distinctIdsOf, startAcceptance, storedEvents, storedPerson } from './acceptance.ts'
import { pythonWith } from './python-environment.ts'
import { createTypedFlags } from './typed-flags.ts'

// Published versions of posthog-python, unmodified, each in its own virtual environment.
// Source: docs/wire/clients.md 3.2, 13 rows 22–27 and 29.

const sdks = [
  {
    version: '3.5.2',
    flagsPath: '/decide/?v=3',
    definitionsPath: '/api/feature_flag/local_evaluation/',
    revalidates: false,
    identifies: '$identify',
  },
  {
    version: '7.91.1',
    flagsPath: '/flags/?v=4',
    definitionsPath: '/flags/definitions',
    revalidates: true,
    identifies: '$set',
  },
]

// biome-ignore lint/suspicious/noExplicitAny: what the script saw
type Seen = any

const acceptance = startedForTests(startAcceptance)

for (const sdk of sdks) {
  describe(`posthog-python ${sdk.version}`, () => {
    const prefix = `python-${sdk.version}-`
    let seen: Seen

    before(async () => {
      const { proxy } = acceptance
      proxy.take()
      const script = join(import.meta.dirname, 'posthog_python_scenario.py')
      const args = [script, proxy.url, testProjectKey, testPersonalKey, prefix]
      const { stdout } = await promisify(execFile)(pythonWith(sdk.version), args, { timeout: 240_000 })
      seen = JSON.parse(stdout)
    })

    it('reads flags and payloads, also with the properties and groups of the call', () => {
      assert.deepEqual(seen.flags, {
        ...{ 'bool-on': true, 'bool-off': false, multi: 'variant-a', plain: true },
        ...{ 'group-flag': false, 'local-prop': false, 'cohort-flag': false },
      })
      const payloads = Object.entries(seen.payloads).filter(([, payload]) => payload !== null)
      assert.deepEqual(Object.fromEntries(payloads), { 'bool-on': '{"a":1}', multi: '"hello"' })
      assert.equal(seen.multi, 'variant-a')
      assert.equal(seen.bool_on, true)
      const payload = typeof seen.payload === 'string' ? JSON.parse(seen.payload) : seen.payload
      assert.deepEqual(payload, { a: 1 })
      assert.equal(seen.with_property, true)
      assert.equal(seen.with_group, true)
      const asked = acceptance.proxy.exchanges
        .map(({ path }) => path)
        .filter(path => /^\/(flags|decide)\/\?/.test(path))
      assert.deepEqual([...new Set(asked)], [sdk.flagsPath])
    })

    it('evaluates locally, and polls with the entity tag when it has one', () => {
      assert.deepEqual(seen.local, {
        ...{ 'bool-on': true, 'bool-off': false, multi: 'variant-a', 'local-prop': true, 'group-flag': true },
        'cohort-flag': true,
      })
      const polls = acceptance.proxy.exchanges.filter(({ path }) => path.startsWith(sdk.definitionsPath))
      assert.ok(polls.length > 0, JSON.stringify(acceptance.proxy.exchanges.map(({ path }) => path)))
      assert.equal(
        polls.some(({ status }) => status === 304),
        sdk.revalidates,
      )
    })

    it('gets its events, persons and groups stored as they were sent', async () => {
      const { pennon } = acceptance
      const [id, alias, company] = [`${prefix}sender`, `${prefix}alias`, `${prefix}acme`]
      const stored = await storedEvents(pennon, id)
      const bought = stored.find(({ event }) => event === 'bought')!
      assert.ok(Math.abs(Date.parse(bought.timestamp) - Date.parse('2026-01-02T03:04:05.678Z')) < 1_000)
      assert.equal(bought.properties.price, 9.5)
      assert.equal(bought.properties.ok, true)
      assert.equal(bought.properties['$feature/multi'], 'variant-a')
      assert.equal(bought.properties.$lib, 'posthog-python')
      const grouped = stored.find(({ event }) => event === 'grouped')!
      assert.deepEqual(grouped.properties.$groups, { company })
      assert.ok(
        stored.some(({ event }) => event === sdk.identifies),
        stored.map(({ event }) => event).join(),
      )

      const person = await storedPerson(pennon, alias)
      assert.deepEqual(person?.distinct_ids.toSorted(), [alias, id].toSorted())
      assert.equal(person.properties.email, 'a@example.org')
      const group = await pennon.api<{ group_properties: object }>(
        'GET',
        `/api/projects/@current/groups/find/?group_type_index=0&group_key=${company}`,
      )
      assert.deepEqual(group.group_properties, { tier: 'gold' })
      const called = await storedEvents(pennon, `${prefix}reader`)
      const calls = called.filter(({ event }) => event === '$feature_flag_called')
      assert.ok(calls.some(({ properties }) => properties.$feature_flag_response === 'variant-a'))
    })

    it('gets a thousand gzipped events stored once each before shutdown completes', async () => {
      const ids = await distinctIdsOf(acceptance.pennon, `${prefix}thousand`)
      assert.equal(ids.length, 1_000)
      assert.equal(new Set(ids).size, 1_000)
    })

    it('gets a historical migration stored as an import, and its other events as live', async () => {
      const [old] = await storedEvents(acceptance.pennon, `${prefix}imported`)
      assert.equal(old?.historical_migration, true)
      assert.equal(new Date(old.timestamp).toISOString(), '2021-05-06T07:08:09.123Z')
      const live = await storedEvents(acceptance.pennon, `${prefix}sender`)
      assert.ok(live.every(({ historical_migration }) => !historical_migration))
    })

    it('gets only 200 or 304 with a valid key, and logs no warning', () => {
      assert.deepEqual(seen.complaints, [])
      const statuses = acceptance.proxy.exchanges.map(({ status }) => status)
      assert.deepEqual([...new Set(statuses)].toSorted(), sdk.revalidates ? [200, 304, 401] : [200, 401])
    })

    it('learns that a key is wrong, and no event sent with that key is stored', async () => {
      assert.equal(seen.stranger, null)
      assert.ok(seen.refusals.length > 0)
      assert.deepEqual(await storedEvents(acceptance.pennon, `${prefix}stranger`), [])
    })
  })
}

it('posthog-python waits for the Retry-After of a 503, and the event is stored once', async () => {
  const { pennon, proxy } = acceptance
  proxy.take()
  proxy.answerNext('/batch', [{ status: 503, headers: { 'retry-after': '2' }, body: '{"type":"server_error"}' }])
  const program = `
import sys, time
from posthog import Posthog
posthog = Posthog(sys.argv[2], host=sys.argv[1])
posthog.capture(distinct_id="python-waiting", event="waited for")
began = time.monotonic()
posthog.shutdown()
print(time.monotonic() - began)
`
  const python = pythonWith(sdks.at(-1)!.version)
  const { stdout } = await promisify(execFile)(python, ['-c', program, proxy.url, testProjectKey], { timeout: 240_000 })
  assert.ok(Number(stdout) >= 2, stdout)
  assert.deepEqual(
    proxy.take().map(({ path, status }) => `${path} ${status}`),
    ['/batch/ 503', '/batch/ 200'],
  )
  const stored = await storedEvents(pennon, 'python-waiting')
  assert.deepEqual(
    stored.map(({ event }) => event),
    ['waited for'],
  )
})

it('posthog-python reads typed values, and reports which rule decided, and one exposure of an experiment', async () => {
  const { pennon, proxy } = acceptance
  await createTypedFlags(pennon)
  proxy.take()
  const program = `
import json, sys
from posthog import Posthog
posthog = Posthog(sys.argv[2], host=sys.argv[1])
keys = ["typed-boolean", "typed-text", "typed-number", "typed-object", "typed-none", "typed-split"]
flags = posthog.evaluate_flags("typed-ada")
print(json.dumps({key: [flags.is_enabled(key), flags.get_flag(key), flags.get_flag_payload(key)] for key in keys}))
posthog.evaluate_flags("typed-ada").get_flag("typed-split")
posthog.shutdown()
`
  const python = pythonWith(sdks.at(-1)!.version)
  const { stdout } = await promisify(execFile)(python, ['-c', program, proxy.url, testProjectKey], { timeout: 240_000 })
  assert.ok(proxy.exchanges.every(({ status }) => status === 200))
  const { 'typed-split': split, ...others } = JSON.parse(stdout)
  assert.deepEqual(others, {
    'typed-boolean': [true, true, null],
    'typed-text': [true, 'green', null],
    'typed-number': [true, true, 42.5],
    'typed-object': [true, true, { theme: { dark: true } }],
    'typed-none': [false, false, null],
  })
  const [, value] = split
  const stored = await storedEvents(pennon, 'typed-ada')
  const calls = stored.filter(({ event }) => event === '$feature_flag_called').map(({ properties }) => properties)
  assert.equal(calls.length, 6)
  assert.ok(calls.every(({ $feature_flag_config_version: version }) => version === 2))
  const called = calls.find(({ $feature_flag: key }) => key === 'typed-split')
  const variant = value === 'blue' ? 'a' : 'b'
  assert.deepEqual(
    ['reason_code', 'rule_type', 'variant_key', 'has_experiment'].map(name => called[`$feature_flag_${name}`]),
    ['experiment_split', 'experiment', variant, true],
  )
  const exposures = stored.filter(({ event }) => event === '$experiment_exposure').map(({ properties }) => properties)
  assert.deepEqual(
    exposures.map(one => [one.$feature_flag, one.$feature_flag_response, one.$feature_flag_variant_key]),
    [['typed-split', value, variant]],
  )
  assert.equal(exposures[0].$feature_flag_rule_id, called.$feature_flag_rule_id)
})

it('the README’s program for Python works as printed', async () => {
  const { pennon } = acceptance
  await pennon.api('POST', '/api/projects/@current/feature_flags/', {
    key: 'new-checkout',
    filters: { groups: [{ properties: [{ key: 'country', type: 'person', operator: 'exact', value: ['NO'] }] }] },
  })
  const printed = /```python\n(.*?)```/s.exec(readFileSync('README.md', 'utf8'))![1]!
  const program = printed.replace('http://127.0.0.1:8000', pennon.url).replace('phc_…', testProjectKey)
  // A program copied from the README must not print warnings.
  const output = execFileSync(pythonWith(sdks.at(-1)!.version), ['-W', 'error::DeprecationWarning', '-c', program], {
    encoding: 'utf8',
  })
  assert.equal(output, 'new-checkout is True\n')
  const [order] = (await storedEvents(pennon, 'ada')).filter(({ event }) => event === 'order placed')
  assert.equal(order?.properties['$feature/new-checkout'], true)
})

it('PostHog’s provider for OpenFeature reads values by their type and payloads as objects, one flag per request', async () => {
  const { proxy } = acceptance
  const newest = sdks.at(-1)!
  proxy.take()
  const program = `
import json, sys
from openfeature import api
from openfeature.contrib.provider.posthog import PostHogProvider
from openfeature.evaluation_context import EvaluationContext
from posthog import Posthog
host, project_key = sys.argv[1:]
posthog = Posthog(project_key, host=host)
api.set_provider(PostHogProvider(posthog, send_feature_flag_events=False))
flags = api.get_client()
ada = EvaluationContext("ada")
gold = EvaluationContext("ada", {"groups": {"company": "acme"}, "group_properties": {"company": {"tier": "gold"}}})
nowhere = flags.get_boolean_details("nowhere", True, ada)
print(json.dumps({
    "object": flags.get_object_value("bool-on", {}, ada),
    "boolean": [flags.get_boolean_value(key, default, ada) for key, default in (("bool-on", False), ("bool-off", True))],
    "string": flags.get_string_value("multi", "default", ada),
    "by property": flags.get_boolean_value("local-prop", False, EvaluationContext("ada", {"plan": "pro"})),
    "by group": flags.get_boolean_value("group-flag", False, gold),
    "nowhere": [nowhere.value, nowhere.error_code],
}))
posthog.shutdown()
`
  const { stdout } = await promisify(execFile)(pythonWith(newest.version), ['-c', program, proxy.url, testProjectKey], {
    timeout: 240_000,
  })
  assert.deepEqual(JSON.parse(stdout), {
    ...{ object: { a: 1 }, boolean: [true, false], string: 'variant-a', 'by property': true, 'by group': true },
    nowhere: [true, 'FLAG_NOT_FOUND'],
  })
  assert.deepEqual(
    proxy.take().map(({ path, status }) => `${status} ${path}`),
    Array(7).fill(`200 ${newest.flagsPath}`),
  )
})
