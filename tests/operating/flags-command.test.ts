import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { plainTerminal } from '../../src/commands/client/terminal.ts'
import { formatFlagTable } from '../../src/commands/flags/list-flags.ts'
import { formatUsage } from '../../src/commands/flags/show-usage.ts'
import { type RunningFront, startFront } from '../support/front.ts'
import { testPersonalKey } from '../support/pennon.ts'
import { callCommand } from '../support/pennon-command.ts'
import { tempDir } from '../support/temp-dir.ts'

// Runs the command as users do, against a real front. Source: docs/guides/flags.md.

let front: RunningFront
const everybody = { groups: [{ properties: [], rollout_percentage: 100 }] }

before(async () => {
  front = await startFront()
  const make = (body: object) => front.api('POST', '/api/projects/1/feature_flags/', body)
  await make({ key: 'new-checkout', name: 'Neue Kasse 日本語', filters: everybody, tags: ['shop'] })
  await make({
    key: 'search',
    active: false,
    name: 'red\u001b[31m',
    filters: {
      groups: [
        {
          properties: [{ key: 'plan', type: 'person', value: ['pro', 'team'] }],
          rollout_percentage: 33.5,
          variant: 'a',
        },
        { properties: [], rollout_percentage: 5 },
      ],
      multivariate: {
        variants: [
          { key: 'a', rollout_percentage: 50 },
          { key: 'b', rollout_percentage: 50 },
        ],
      },
      payloads: { a: '{"colour": "red"}' },
    },
  })
})
after(() => front.close())

function flags(args: readonly string[], { key = testPersonalKey, host = front.url } = {}) {
  return callCommand(key === '' ? {} : { PENNON_PERSONAL_KEY: key }, 'flags', ...args, '--host', host)
}

async function linesOf(args: readonly string[]): Promise<string[]> {
  const { exitCode, stdout, stderr } = await flags(args)
  assert.deepEqual([exitCode, stderr], [0, ''])
  return stdout.split('\n').slice(0, -1)
}

describe('pennon flags', () => {
  it('list prints a table without colours or control characters, and filters by text and state', async () => {
    const [title, ...rows] = await linesOf(['list'])
    assert.match(title!, /^KEY +STATUS +ROLLOUT +LAST CALLED +CHANGED +TAGS +NAME$/)
    assert.match(rows[0]!, /^search +inactive +by conditions: 33\.5 % \/ 5 % +\d{4}-\d\d-\d\d +red\\u001b\[31m$/)
    assert.match(rows[1]!, /^new-checkout +active +everyone +\d{4}-\d\d-\d\d +shop +Neue Kasse 日本語$/)
    assert.equal(rows.length, 2)
    assert.equal((await linesOf(['list', '--search', 'KASSE'])).length, 2)
    assert.match((await linesOf(['list', '--active', 'false']))[1]!, /^search /)
    for (const none of [['--search', 'no such'], ['--active', 'stale'], ['--archived']])
      assert.deepEqual(await linesOf(['list', ...none]), ['No matching flags.'])
  })

  it('--json prints the answers of the private API', async () => {
    const listed = JSON.parse((await linesOf(['list', '--json'])).join('\n'))
    assert.deepEqual(
      listed.map(({ key }: { key: string }) => key),
      ['search', 'new-checkout'],
    )
    const shown = JSON.parse((await linesOf(['show', 'search', '--json'])).join('\n'))
    assert.deepEqual(shown, await front.api('GET', '/api/projects/1/feature_flags/search/'))
  })

  it('show describes the conditions, variants and payloads of one flag', async () => {
    const text = (await linesOf(['show', 'search'])).join('\n')
    assert.match(text, /^key +search$/m)
    assert.match(text, /^status +inactive: The flag is disabled\.$/m)
    assert.match(text, /^conditions +1\. plan exact pro or team, 33\.5 % of them, variant a\n +2\. 5 % of everyone$/m)
    assert.match(text, /^variants +a: 50 %\n +b: 50 %$/m)
    assert.match(text, /^payloads +a: \{"colour": "red"\}$/m)
    const shown = await linesOf(['show', '1'])
    assert.equal(shown[0], 'key         new-checkout')
    assert.ok(shown.includes('called      never recorded'), shown.join('\n'))
  })

  it('explain shows why a person gets a value', async () => {
    const [summary] = await linesOf(['explain', 'new-checkout', 'ada'])
    assert.match(summary!, /^new-checkout is true for ada/)
    await front.api('POST', '/api/projects/1/feature_flags/', {
      key: 'adult',
      filters: { groups: [{ properties: [{ key: 'age', type: 'person', operator: 'gt', value: 17 }] }] },
    })
    const lines = await linesOf(['explain', 'adult', 'ada', '--property', 'age=18'])
    assert.match(lines.join('\n'), /^adult is true .*\n {2}set 1: matched.*\n {6}✓ age gt 17: 18 \(request\)$/)
    const young = await linesOf(['explain', 'adult', 'ada', '--property', 'age=16', '--group', 'company=acme'])
    assert.match(young[0]!, /No matching condition set\.$/)
    assert.match(young.join('\n'), /set 1: no condition match\n {6}✗ age gt 17: 16 \(request\)$/)
    const odd = await linesOf(['explain', 'adult', 'ada', '--property', 'age=old'])
    assert.match(odd.at(-1)!, /^ {6}· age gt 17: old \(request\); .*number/, 'the reason why it cannot be compared')
    const { id } = await front.api<{ id: number }>('GET', '/api/projects/1/feature_flags/adult/')
    await front.api('POST', '/api/projects/1/feature_flags/', {
      key: 'bar',
      filters: {
        groups: [{ properties: [{ key: `${id}`, type: 'flag', operator: 'flag_evaluates_to', value: true }] }],
      },
    })
    const bar = await linesOf(['explain', 'bar', 'ada', '--property', 'age=16'])
    assert.match(bar.at(-1)!, /✗ flag \d+ is true: false \(flag\); the flag adult$/)
    const variants = [{ key: 'only', rollout_percentage: 100 }]
    const filters = { ...everybody, multivariate: { variants } }
    await front.api('POST', '/api/projects/1/feature_flags/', { key: 'split', filters })
    assert.match(
      (await linesOf(['explain', 'split', 'ada'])).at(-1)!,
      / set 1: matched; 100 %: in; variant only, by hash$/,
    )
  })

  const stuck: [what: string, args: string[], over: Parameters<typeof flags>[1], says: RegExp][] = [
    ['the key is missing', ['list'], { key: '' }, /Set PENNON_PERSONAL_KEY to .*feature_flag:read.*pennon new-key/],
    [
      'the key is wrong',
      ['list'],
      { key: `phx_${'wrong'.repeat(5)}` },
      /rejected the key in PENNON_PERSONAL_KEY.*pennon new-key/,
    ],
    [
      'no instance answers',
      ['list'],
      { host: 'http://127.0.0.1:1' },
      /No instance answers at http:\/\/127\.0\.0\.1:1.*--host/,
    ],
    ['the address is invalid', ['list'], { host: 'ftp://x' }, /--host must be a URL such as/],
    ['the project is unknown', ['list', '--project', '99'], {}, /project does not exist.* project 99 at .*--project/],
    [
      'the key of a flag is misspelled',
      ['show', 'new-chekout'],
      {},
      /no flag new-chekout .*Did you mean new-checkout\? .*pennon flags list/,
    ],
    ['a flag is unknown', ['explain', 'sear', 'ada'], {}, /no flag sear .*Did you mean search\?/],
    ['a time is invalid', ['usage', 'search', '--from', 'yesterday'], {}, /^pennon: --from: Must be a time such as /],
    [
      'a property is not name=value',
      ['explain', 'search', 'ada', '--property', 'plan'],
      {},
      /--property must be a name and a value/,
    ],
  ]
  for (const [what, args, over, says] of stuck)
    it(`a command prints one line with the remedy and exits with code 2 when ${what}`, async () => {
      const { exitCode, stdout, stderr } = await flags(args, over)
      assert.match(stderr, says)
      assert.deepEqual([exitCode, stdout, stderr.split('\n').length], [2, '', 2])
    })

  it('unknown options and invalid option values exit with code 2', async () => {
    const { exitCode, stderr } = await flags(['usage', 'search', '--interval', 'minute'])
    assert.match(stderr, /'minute' is invalid\. Allowed choices are day, hour\.\nRun `pennon flags usage --help`/)
    assert.equal(exitCode, 2)
    assert.equal((await flags(['usage', 'search', '--colour'])).exitCode, 2)
  })

  it('an output that cannot be written exits with code 1', async t => {
    const full = await open('/dev/full', 'w')
    t.after(() => full.close())
    const child = spawn(process.execPath, ['src/main.ts', 'flags', 'list', '--json', '--host', front.url], {
      env: { PATH: process.env.PATH, PENNON_PERSONAL_KEY: testPersonalKey },
      stdio: ['ignore', full.fd, 'pipe'],
    })
    const [stderr, [exitCode]] = await Promise.all([textOf(child.stderr!), once(child, 'exit')])
    assert.match(stderr, /pennon: the output could not be written completely: ENOSPC/)
    assert.equal(exitCode, 1)
  })

  it('the scope that a key lacks is named', async () => {
    const { value } = await front.api<{ value: string }>('POST', '/api/personal_api_keys/', {
      label: 'events alone',
      scopes: ['query:read'],
    })
    const { exitCode, stderr } = await flags(['list'], { key: value })
    assert.equal(exitCode, 2)
    assert.match(stderr, /lacks permission at .*feature_flag:read/)
  })

  it('every help text has examples', async () => {
    for (const command of [
      [],
      ['list'],
      ['show'],
      ['explain'],
      ['create'],
      ['restore'],
      ['rollout'],
      ['export'],
      ['import'],
    ]) {
      const { exitCode, stdout } = await callCommand({}, 'flags', ...command, '--help')
      assert.equal(exitCode, 0)
      assert.match(stdout, new RegExp(`\\$ pennon flags ${command[0] ?? 'list'}`))
    }
  })
})

describe('pennon flags, when it changes a flag', () => {
  const version = async (key: string) => {
    const flag = await front.api<{ version: number }>('GET', `/api/projects/1/feature_flags/${key}/`)
    return flag.version
  }

  it('a change is described with its effect, and not made without --yes if there is no terminal', async () => {
    const asked = await flags(['create', 'quiet', '--name', 'Not yet'])
    assert.deepEqual(asked.stdout.split('\n').slice(0, -1), [
      'A new flag quiet',
      '  + disabled',
      '  + everyone',
      'Of 0 stored persons, none gets another value.',
    ])
    assert.match(
      asked.stderr,
      /^pennon: Nothing was changed: there is no terminal to ask for confirmation\. Add --yes /,
    )
    assert.equal(asked.exitCode, 2)
    assert.equal((await flags(['show', 'quiet'])).exitCode, 2)
    const rule = { rule_type: 'targeted_release', value: 'b', targeting: { properties: [] } }
    const filters = { version: 2, return_type: 'string', default_value: 'a', rules: [rule] }
    const ruled = await flags(['create', 'ruled', '--filters', JSON.stringify(filters)])
    assert.deepEqual(ruled.stdout.split('\n').slice(1, 4), ['  + disabled', '  + everyone: "b"', '  + else "a"'])
    const { stderr, exitCode } = await flags(['disable', 'search', '--json'])
    assert.deepEqual([stderr, exitCode], ['pennon: --json cannot ask for confirmation: add --yes.\n', 2])
  })

  it('creating, rolling out, switching and archiving a flag each create one version', async () => {
    const made = await linesOf(['create', 'steps', '--yes', '--tag', 'a', '--tag', 'b'])
    assert.equal(
      made.at(-1),
      'steps is disabled. Rollout: everyone. Version 1. To enable it: pennon flags enable steps',
    )
    for (const [args, said] of [
      [
        ['rollout', 'steps', '25'],
        ['  - everyone', '  + 25 % of everyone', /is disabled\. .* 25 %\. Version 2\. To enable it: /],
      ],
      [['rollout', 'steps', '25%'], [/^Nothing to change\. steps is disabled\. .* Version 2\. To enable it: /]],
      [
        ['enable', 'steps'],
        ['  - disabled', '  + enabled', /^steps is enabled\. .* Version 3\.$/],
      ],
      [
        ['rollout', 'steps', 'everyone'],
        ['  + everyone', /^steps is enabled\. .* everyone\. Version 4\.$/],
      ],
      [
        ['archive', 'steps'],
        ['  - enabled', '  + disabled', '  + archived', /^steps is archived\. .* Version 5\.$/],
      ],
      [
        ['restore', 'steps'],
        ['  - archived', /^steps is disabled\. .* Version 6\. To enable it: pennon flags enable steps$/],
      ],
    ] as [string[], (string | RegExp)[]][]) {
      const lines = await linesOf([...args, '--yes'])
      const changeLines = lines.length === 1 ? lines : lines.slice(1)
      assert.equal(changeLines.length, said.length, lines.join('\n'))
      for (const [index, line] of changeLines.entries())
        if (typeof said[index] === 'string') assert.equal(line, said[index])
        else assert.match(line, said[index]!)
    }
    const printed = JSON.parse((await linesOf(['enable', 'steps', '--yes', '--json'])).join('\n'))
    assert.deepEqual([printed.active, printed.version, printed.tags], [true, 7, ['a', 'b']])
    const again = JSON.parse((await linesOf(['enable', 'steps', '--yes', '--json'])).join('\n'))
    assert.deepEqual([again.version, await version('steps')], [7, 7])
    const [titles, ...changes] = await linesOf(['history', 'steps'])
    assert.match(titles!, /^VERSION +TIME +BY +CHANGE$/)
    assert.equal(changes.length, 7)
    assert.match(changes[0]!, /^ +7 {2}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}\S.* active: false → true/)
    assert.match(changes[5]!, /filters\.groups\.0\.rollout_percentage: 100 → 25/)
    assert.match(changes[6]!, / created$/)
    const entries = JSON.parse((await linesOf(['history', 'steps', '--json'])).join('\n'))
    assert.deepEqual([entries.length, entries[0].detail.version], [7, 7])
    assert.match((await flags(['history', 'stepz'])).stderr, /There is no flag stepz .*Did you mean steps\?/)
  })

  it('a change that the flag does not allow exits with code 2 and a remedy', async () => {
    const before = await version('search')
    for (const command of ['create', 'archive']) await linesOf([command, 'put-away', '--yes'])
    for (const [args, says] of [
      [['rollout', 'search', '5'], /Select a condition with --condition, 1 to 2: 1\. plan exact pro or team, 33\.5 %/],
      [
        ['rollout', 'search', '5', '--condition', '3'],
        /--condition must be a number from 1 to 2, as in pennon flags show, not 3/,
      ],
      [['rollout', 'search', '101'], /A rollout must be a percentage from 0 to 100, or everyone, not 101/],
      [['rollout', 'search', 'everyone'], /Name one of its variants: a, b/],
      [['rollout', 'search', 'everyone', '--variant', 'c'], /has no variant 'c'/],
      [['disable', 'new-chekout'], /There is no flag new-chekout .*Did you mean new-checkout\?/],
      [['enable', 'put-away'], /put-away is archived\. Restore it first: pennon flags restore put-away/],
      [['create', 'search'], /The flag search already exists\. .* pennon flags show search/],
    ] as [string[], RegExp][]) {
      const { exitCode, stderr } = await flags([...args, '--yes'])
      assert.match(stderr, says)
      assert.equal(exitCode, 2, args.join(' '))
    }
    assert.equal(await version('search'), before)
  })
})

describe('the output of pennon flags', () => {
  it('the list of a project without flags is "No flags."', () =>
    assert.deepEqual(formatFlagTable([], plainTerminal), ['No flags.']))

  const buckets = ['2026-11-01', '2026-11-02', '2026-11-03', '2026-11-04'].map(day => `${day}T00:00:00Z`)
  const usage = {
    last_called_at: '2026-11-04T12:00:00Z',
    results: [
      { value: 'control', calls: [1000, 500, 0, 1], persons: [10, 20, 0, 1], buckets },
      { value: '日本', calls: [2000, 0, 0, 0], persons: [7, 0, 0, 0], buckets },
      { value: '$$_posthog_breakdown_null_$$', calls: [0, 0, 0, 8], persons: [0, 0, 0, 1], buckets },
    ],
  }

  it('usage has a row and a chart per value, all on the same scale', () => {
    assert.deepEqual(formatUsage(usage, 'day', plainTerminal), [
      'VALUE       CALLS  PERSONS  PER DAY',
      'control     1,501       20  ▄▂ ▁',
      '日本        2,000        7  █',
      '(no value)      8        1     ▁',
      '2026-11-01 to 2026-11-04; a full bar is 2,000 calls; last called 2026-11-04T12:00:00Z',
    ])
  })

  it('a narrow terminal gets fewer bars, and the period of each bar is stated', () => {
    const hours = Array.from({ length: 40 }, (_, hour) => new Date(Date.UTC(2026, 10, 1, hour)).toISOString())
    const long = {
      ...usage,
      results: [{ value: 'true', calls: Array(40).fill(1), persons: Array(40).fill(1), buckets: hours }],
    }
    const [title, row, foot] = formatUsage(long, 'hour', { ...plainTerminal, width: 40 }, true)
    assert.match(
      foot!,
      /^2026-11-01 00:00 to 2026-11-02 15:00, still in progress, the last bar covers 1 hour; a full bar/,
    )
    assert.equal(title, 'VALUE  CALLS  PERSONS  PER 3 HOURS')
    assert.equal(row, 'true      40        1  █████████████▃')
  })

  it('the usage of a flag without calls says that no call has been recorded', () => {
    assert.deepEqual(formatUsage({ last_called_at: null, results: [] }, 'day', plainTerminal), [
      'No call of this flag has been recorded.',
    ])
  })
})

describe('pennon flags export and import', () => {
  it('two commands copy the flags of one project to another', async t => {
    await front.api('POST', '/api/projects/', { name: 'Other' })
    const path = join(tempDir(t), 'flags.json')
    const exported = await flags(['export', 'search', 'new-checkout'])
    assert.deepEqual([exported.exitCode, exported.stderr], [0, ''])
    assert.doesNotMatch(exported.stdout, /\p{Cc}(?<!\n)/u, 'names may contain characters that move the cursor')
    writeFileSync(path, exported.stdout)

    const shown = await linesOf(['import', path, '--project', '2', '--dry-run'])
    assert.deepEqual(shown, [
      'Flag new-checkout, new',
      '  + enabled',
      '  + everyone',
      'Flag search, new',
      '  + disabled',
      '  + plan exact pro or team, 33.5 % of them, variant a',
      '  + 5 % of everyone',
      '  + variant a: 50 %',
      '  + variant b: 50 %',
      'new-checkout: Of 0 stored persons, none gets another value.',
      'Nothing was written: this is a dry run.',
    ])
    const unasked = await flags(['import', path, '--project', '2'])
    assert.match(
      unasked.stderr,
      /^pennon: Nothing was written: there is no terminal to ask for confirmation\. Add --yes /,
    )
    assert.deepEqual(await linesOf(['list', '--project', '2']), ['No flags.'])

    const lines = await linesOf(['import', path, '--project', '2', '--yes'])
    assert.deepEqual(lines.slice(-2), ['created flag new-checkout, version 1', 'created flag search, version 1'])
    assert.equal((await flags(['export', '--project', '2'])).stdout, exported.stdout)
  })

  it('import shows the differences, and --json reports the outcome for each flag', async t => {
    const path = join(tempDir(t), 'flags.json')
    const { stdout } = await flags(['export', 'search', 'new-checkout'])
    writeFileSync(path, stdout.replace('"rollout_percentage": 33.5', '"rollout_percentage": 40'))
    const shown = await linesOf(['import', path, '--dry-run'])
    assert.deepEqual(shown.slice(1, 3), [
      '  filters.groups.0.rollout_percentage: 33.5 → 40',
      'Already up to date: 1 flag.',
    ])
    const { cohorts, flags: results } = JSON.parse((await linesOf(['import', path, '--yes', '--json'])).join('\n'))
    assert.deepEqual(cohorts, [])
    const outcomes = results.map(({ key, action, written }: Record<string, unknown>) => [key, action, written])
    assert.deepEqual(outcomes, [
      ['search', 'update', true],
      ['new-checkout', 'none', false],
    ])
    assert.deepEqual(results[0].changes, [
      { path: 'filters.groups.0.rollout_percentage', action: 'changed', before: 33.5, after: 40 },
    ])
    assert.deepEqual(await linesOf(['import', path]), ['Already up to date: 2 flags.', 'Nothing to write.'])
  })

  it('an invalid flag, and a flag whose seeds only a key with all scopes may set, are not imported', async t => {
    const path = join(tempDir(t), 'flags.json')
    const write = (flag: object) =>
      writeFileSync(path, JSON.stringify({ format: 'pennon_flags', format_version: 1, flags: [flag] }))
    write({ key: 'faulty', active: true, filters: { groups: [{ properties: [], rollout_percentage: 101 }] } })
    const faulty = await flags(['import', path, '--yes'])
    assert.match(
      faulty.stderr,
      /^pennon: flag faulty: filters\.groups\.0\.rollout_percentage: .*\npennon: Nothing was written: 1 problem, listed above\.\n$/,
    )
    assert.deepEqual([faulty.exitCode, faulty.stdout], [2, ''])
    const scopes = ['feature_flag:write', 'cohort:write', 'group:read']
    const { value: key } = await front.api<{ value: string }>('POST', '/api/personal_api_keys/', {
      label: 'some',
      scopes,
    })
    write({
      key: 'ruled',
      active: true,
      filters: { version: 2, return_type: 'boolean', default_value: null, rules: [] },
    })
    const ruled = await flags(['import', path, '--yes'], { key })
    assert.match(ruled.stderr, /^pennon: flag ruled: .* key with all scopes/)
    assert.equal((await flags(['import', path, '--yes'])).exitCode, 0)
  })
})
