// Rounds of random definitions and subjects: `/flags` answers what the evaluator inside posthog-node, fed with our own
// definitions, decides locally, except for the documented differences.

import assert from 'node:assert/strict'
import { PostHog } from 'posthog-node'
import { type Pennon, testPersonalKey } from '../../support/pennon.ts'
import { type Difference, documentedDifferences, type World } from './documented-differences.ts'
import { picker } from './picker.ts'
import {
  groupTypes,
  type RandomCohort,
  type RandomFlag,
  type RandomSubject,
  randomCohort,
  randomFlag,
  randomSubject,
} from './random-definitions.ts'

export interface ComparisonSize {
  readonly flagCount: number
  readonly cohortCount: number
  readonly subjectCount: number
}

export interface Comparison {
  pairCount: number
  equalCount: number
  /** How many pairs posthog-node left to the server, and how many it decided differently, by documented difference. */
  readonly undecided: Record<string, number>
  readonly other: Record<string, number>
}

export function emptyComparison(): Comparison {
  return { pairCount: 0, equalCount: 0, undecided: {}, other: {} }
}

interface RoundProject {
  readonly id: number
  readonly api_token: string
}

/**
 * Runs one round in its own project and adds it to `comparison`.
 * @throws AssertionError naming flag and subject for an undocumented difference.
 */
export async function compareRound(
  pennon: Pennon,
  random: () => number,
  size: ComparisonSize,
  comparison: Comparison,
): Promise<void> {
  const project = await pennon.api<RoundProject>('POST', '/api/projects/', {
    name: 'random',
    property_matching_version: random() < 0.5 ? 1 : 2,
  })
  const world = await createDefinitions(pennon, project, random, size)
  const client = new PostHog(project.api_token, {
    host: pennon.url,
    personalApiKey: testPersonalKey,
    featureFlagsPollingInterval: 600_000,
    disableGeoip: true,
  })
  try {
    assert.equal(await client.waitForLocalEvaluationReady(10_000), true, 'posthog-node has read the definitions')
    for (let index = 0; index < size.subjectCount; index++) {
      const subject = randomSubject(random)
      const [remote, local] = [await decideRemotely(pennon, project, subject), await decideLocally(client, subject)]
      for (const flag of world.flagById.values()) compareFlag(flag, subject, remote, local, world, comparison)
    }
  } finally {
    await client.shutdown()
  }
}

async function createDefinitions(
  pennon: Pennon,
  project: RoundProject,
  random: () => number,
  size: ComparisonSize,
): Promise<World> {
  const pick = picker(random)
  await createGroupTypes(pennon, project)
  const cohorts: RandomCohort[] = []
  for (let index = 0; index < size.cohortCount; index++) {
    const cohort = randomCohort(pick, cohorts)
    const body = { name: `cohort ${index}`, is_static: cohort.is_static, filters: { properties: cohort.tree } }
    const { id } = await pennon.api<{ id: number }>('POST', `/api/projects/${project.id}/cohorts/`, body)
    cohorts.push({ ...cohort, id })
  }
  const flags: RandomFlag[] = []
  for (let index = 0; index < size.flagCount; index++) {
    const { id: _unknown, ...flag } = randomFlag(`flag-${index}`, pick, { flags, cohorts })
    const { id } = await pennon.api<{ id: number }>('POST', `/api/projects/${project.id}/feature_flags/`, flag)
    flags.push({ ...flag, id })
  }
  return {
    flagById: new Map(flags.map(flag => [flag.id, flag])),
    cohortById: new Map(cohorts.map(cohort => [cohort.id, cohort])),
  }
}

/** In the order of their indexes. */
async function createGroupTypes(pennon: Pennon, project: RoundProject): Promise<void> {
  for (const type of groupTypes) {
    const properties = { $group_type: type, $group_key: 'first', $group_set: {} }
    const event = { api_key: project.api_token, event: '$groupidentify', distinct_id: 'setup', properties }
    const answer = await fetch(`${pennon.url}/capture/`, { method: 'POST', body: JSON.stringify(event) })
    assert.equal(answer.status, 200)
    await pennon.caughtUp()
  }
}

type Values = Record<string, string | boolean | undefined>

async function decideRemotely(pennon: Pennon, project: RoundProject, subject: RandomSubject): Promise<Values> {
  const body = {
    token: project.api_token,
    distinct_id: subject.distinctId,
    groups: subject.groups,
    person_properties: subject.personProperties,
    group_properties: subject.groupProperties,
    geoip_disable: true,
  }
  const answer = await fetch(`${pennon.url}/flags/?v=2`, { method: 'POST', body: JSON.stringify(body) })
  assert.equal(answer.status, 200)
  const { flags } = (await answer.json()) as {
    flags: Record<string, { enabled: boolean; variant: string | null; failed?: true }>
  }
  return Object.fromEntries(
    Object.entries(flags).map(([key, flag]) => [key, flag.failed ? undefined : (flag.variant ?? flag.enabled)]),
  )
}

async function decideLocally(client: PostHog, subject: RandomSubject): Promise<Values> {
  return client.getAllFlags(subject.distinctId, {
    groups: subject.groups,
    personProperties: subject.personProperties as Record<string, string>,
    groupProperties: subject.groupProperties as Record<string, Record<string, string>>,
    onlyEvaluateLocally: true,
    disableGeoip: true,
  })
}

const leavesUndecided: readonly Difference['effect'][] = ['undecided', 'either']
const decidesOtherwise: readonly Difference['effect'][] = ['other', 'either']
/** posthog-node skips a set that it cannot decide if a later one matches. */
const decidesOtherwiseLater: readonly Difference['effect'][] = ['undecided', 'other', 'either']

function goesOn({ filters }: RandomFlag): boolean {
  return filters.groups.length > 1 || filters.groups.some(set => set.properties.some(({ type }) => type === 'flag'))
}

function compareFlag(
  flag: RandomFlag,
  subject: RandomSubject,
  remote: Values,
  local: Values,
  world: World,
  comparison: Comparison,
): void {
  comparison.pairCount++
  const [ours, theirs] = [remote[flag.key], local[flag.key]]
  if (ours === theirs && theirs !== undefined) {
    comparison.equalCount++
    return
  }
  const effects = theirs === undefined ? leavesUndecided : goesOn(flag) ? decidesOtherwiseLater : decidesOtherwise
  const documented = documentedDifferences(flag, subject, world).filter(({ effect }) => effects.includes(effect))
  assert.ok(
    documented.length > 0,
    `${flag.key}: ${ours} here, ${theirs} in posthog-node\n${JSON.stringify({ flag, subject, cohorts: [...world.cohortById.values()] }, null, 1)}`,
  )
  const counts = theirs === undefined ? comparison.undecided : comparison.other
  for (const { name } of documented) counts[name] = (counts[name] ?? 0) + 1
}
