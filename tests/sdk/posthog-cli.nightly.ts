// PostHog's newest tools for agents, `posthog-cli api`, against a running instance: which of them work here, their
// answers, and that all others are refused. The package's own install step downloads a program, which is not needed:
// the tools are one file that Node runs.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it, mock } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { npmFolderWith } from '../support/npm-environment.ts'
import { type Pennon, startPennon, testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { removeFolder } from '../support/temp-dir.ts'
import {
  dataRefusals,
  dataSteps,
  erasureSteps,
  experimentRefusals,
  experimentSteps,
  featureSteps,
  flagEndings,
  flagRefusals,
  flagSteps,
  type Json,
  nameOf,
  personRefusals,
  personSteps,
  projectRefusals,
  projectSteps,
  type Refusal,
  type Step,
  surveyEndings,
  surveyRefusals,
  surveySteps,
} from './posthog-cli-steps.ts'

const toolCount = 672
/** Tools that answer without asking the instance. */
const localTools = ['debug-mcp-ui-apps', 'llma-parser-recipe-reference']

describe('@posthog/cli 0.18.3', () => {
  const driven = new Set<string>()
  const refused = new Set<string>()
  const seen: Record<string, Json> = {}
  let pennon: Pennon
  let folder: string
  let toolsPath: string
  let exec: Json
  let names: readonly string[]

  /** Calls a tool as the command does, with JSON as its answer. */
  async function call(tool: string, args: object): Promise<Json> {
    const command = `call --json --confirm ${tool} ${JSON.stringify(args)}`
    const answer: unknown = await exec.execTool.handler(exec.context, { command })
    return typeof answer === 'string' ? JSON.parse(answer) : answer
  }

  async function take(steps: readonly Step[]) {
    for (const [tool, args, told, expected] of steps) {
      const given = typeof args === 'function' ? args(seen) : args
      const answer = await call(tool, given)
      seen[tool] = answer
      driven.add(tool)
      assert.deepEqual(told(answer), expected, `${tool} ${JSON.stringify(given)}: ${JSON.stringify(answer)}`)
    }
  }

  async function refuse(refusals: readonly Refusal[]) {
    for (const [tool, args, sentence] of refusals) {
      const given = typeof args === 'function' ? args(seen) : args
      await assert.rejects(call(tool, given), { message: sentence }, `${tool} ${JSON.stringify(given)}`)
      refused.add(tool)
    }
  }

  before(async () => {
    // It writes each refusal there.
    mock.method(console, 'error', () => undefined)
    mock.method(console, 'warn', () => undefined)
    toolsPath = join(npmFolderWith('@posthog/cli@0.18.3'), 'node_modules/@posthog/cli/lib/posthog-api-cli.mjs')
    folder = mkdtempSync(join(tmpdir(), 'pennon-tools-'))
    const opened = join(folder, 'tools.mjs')
    // A process for each call would take minutes: this is the same file, which is asked instead of its command line.
    const text = readFileSync(toolsPath, 'utf8')
    const asked = text.replace(/^main\(\)\.catch\([\s\S]*?^\}\);$/m, 'export { buildExec };')
    assert.notEqual(asked, text, 'the file calls its main function in another way')
    writeFileSync(opened, asked)
    pennon = await startPennon()
    await pennon.api('POST', '/api/projects/', { name: 'Second' })
    await pennon.post('/batch/', {
      api_key: testProjectKey,
      batch: [
        {
          ...{ event: 'order placed', distinct_id: 'ada' },
          properties: { price: 1499, $groups: { company: 'acme' }, $set: { plan: 'pro', email: 'ada@example.com' } },
        },
        { event: 'order placed', distinct_id: 'bob', properties: { price: 99.5, $set: { plan: 'free' } } },
        { event: 'signed up', distinct_id: 'bob' },
        { event: '$ai_generation', distinct_id: 'ada', properties: { $ai_model: 'm1', $ai_total_cost_usd: 0.25 } },
        {
          ...{ event: '$groupidentify', distinct_id: 'ada' },
          properties: { $group_type: 'company', $group_key: 'acme', $group_set: { seats: 5 } },
        },
      ],
    })
    await pennon.caughtUp()
    const { buildExec } = (await import(pathToFileURL(opened).href)) as Json
    exec = await buildExec({ host: pennon.url, apiKey: testPersonalKey, version: 2 })
    names = exec.tools.map(nameOf)
  })
  after(async () => {
    await pennon?.stop()
    await removeFolder(folder)
    mock.restoreAll()
  })

  it('runs as published, as a separate program', async () => {
    const env = { ...process.env, POSTHOG_CLI_HOST: pennon.url, POSTHOG_CLI_API_KEY: testPersonalKey }
    const sql = JSON.stringify({ query: 'SELECT 1 AS one' })
    const { stdout } = await promisify(execFile)(process.execPath, [toolsPath, 'call', 'execute-sql', sql], { env })
    assert.match(stdout, /one\n1/)
  })

  it('has the expected tools, and no other tools', () => {
    assert.equal(names.length, toolCount)
  })

  it('finds events and properties', async () => {
    await take(dataSteps)
    await refuse(dataRefusals)
  })

  it('manages flags', async () => {
    await take(flagSteps)
    await refuse(flagRefusals)
    await take(flagEndings)
  })

  it('manages persons and cohorts', async () => {
    await take(personSteps)
    await refuse(personRefusals)
  })

  it('manages experiments', async () => {
    await take(experimentSteps)
    await refuse(experimentRefusals)
  })

  it('manages early access features and surveys', async () => {
    await take(featureSteps)
    await take(surveySteps)
    const properties = { $survey_id: seen['survey-create'].id }
    const events = [
      ['shown', 'ada'],
      ['shown', 'bob'],
      ['sent', 'ada'],
    ].map(([what, distinct_id]) => ({ event: `survey ${what}`, distinct_id, properties }))
    await pennon.post('/batch/', { api_key: testProjectKey, batch: events })
    await pennon.caughtUp()
    await take(surveyEndings)
    await refuse(surveyRefusals)
  })

  it('finds projects and changes their settings', async () => {
    await take(projectSteps)
    await refuse(projectRefusals)
  })

  it('erases persons', async () => {
    await take(erasureSteps)
  })

  it('gets an error from every unsupported tool that can be called without arguments', async t => {
    const others = names.filter(name => !driven.has(name) && !localTools.includes(name))
    const answered: string[] = []
    for (const name of others)
      await call(name, {}).then(
        () => answered.push(name),
        () => undefined,
      )
    assert.deepEqual(answered, [])
    const onlyRefused = [...refused].filter(name => !driven.has(name)).sort()
    t.diagnostic(`${driven.size} of ${names.length} tools work: ${[...driven].sort().join(', ')}`)
    t.diagnostic(`${onlyRefused.length} others were refused by name: ${onlyRefused.join(', ')}`)
  })

  it('has all its working tools listed in the docs', () => {
    const page = readFileSync('docs/wire/private-api.md', 'utf8')
    const section = page.slice(page.indexOf('## 13. '))
    const named = [...section.matchAll(/`([a-z]+(?:-[a-z0-9]+)+)`/g)]
      .map(match => match[1]!)
      .filter(name => names.includes(name))
    assert.deepEqual(named.sort(), [...driven].sort())
  })
})
