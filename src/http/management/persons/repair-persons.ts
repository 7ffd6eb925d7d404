// Rebuilds persons from their events, and splits persons: stores the request, which the worker carries out.

import { openRepairsMax, type PersonRepair, type RebuildRequest, repairedIdsMax } from '#core/persons/person-repair.ts'
import { personDistinctIdCountMax } from '#core/processing/person-merge.ts'
import {
  encodeRebuild,
  rebuildSchema,
  rebuildStatusSchema,
  splitAnswerSchema,
  splitSchema,
} from '#wire/management/persons/repairs.ts'
import { wireError } from '#wire/wire-error.ts'
import {
  type Answer,
  answer,
  createInvalidInputError,
  createNotFoundError,
  createRequiredError,
  refusal,
} from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, parseIdNumber, projectRoutes } from '../kit/endpoint.ts'
import { findPersonById, noSuchPerson } from '../kit/person-filters.ts'

const tag = 'persons'

const tooManyRepairs: Answer = {
  ...refusal(
    wireError(
      429,
      'too_many_person_repairs',
      'A rebuild of persons of this project is not done yet, or too many splits wait. Try again later.',
    ),
  ),
  retryAfterSeconds: 5,
}
const noSuchRebuild = createNotFoundError('The project has no rebuild with this id; only the latest are kept.')
const tooManyIds = createInvalidInputError('uuid', 'Only a person with up to 2,500 distinct ids can be split.')

export function repairPersonsRoutes(deps: ManagementDeps): ManagementRoute[] {
  const { management } = deps
  return [
    ...projectRoutes(deps, {
      route: 'POST /persons/:uuid/split',
      id: 'persons_split',
      summary: 'Split a person: each of its distinct ids becomes a person of its own, made of its own events.',
      scope: 'person:write',
      body: splitSchema,
      bodyIsOptional: true,
      success: { status: 201, schema: splitAnswerSchema },
      handle: async ({ change, project, params, body }) => {
        const person = await findPersonById(management, project.id, params.uuid!)
        if (person === null) return refusal(noSuchPerson)
        const mainId = body.main_distinct_id ?? person.distinctIds[0]?.distinctId
        if (mainId === undefined) return answer(201, { success: true })
        const { mappings } = await management.findPersonsOfIds([project.id], [mainId])
        if (!mappings.some(({ personUuid }) => personUuid === person.uuid))
          return refusal(createInvalidInputError('main_distinct_id', 'The person does not have this distinct id.'))
        if (person.distinctIdCount > personDistinctIdCountMax) return refusal(tooManyIds)
        if (person.distinctIdCount === 1) return answer(201, { success: true })
        const request = { kind: 'split', uuid: person.uuid, mainId } as const
        const repair = await management.requestRepair(project.id, request, openRepairsMax, change)
        return repair === null ? tooManyRepairs : answer(201, { success: true })
      },
    }),
    ...projectRoutes(deps, {
      route: 'POST /person_rebuilds',
      id: 'persons_rebuild',
      tag,
      summary: 'Rebuild persons from their stored events, or report what would change.',
      scope: 'person:write',
      body: rebuildSchema,
      success: { status: 202, schema: rebuildStatusSchema },
      handle: async ({ change, project, body }) => {
        const { uuids = [], distinct_ids: distinctIds = [], all: isAll = false, apply = false } = body
        const idCount = uuids.length + distinctIds.length
        if (!isAll && idCount === 0) return refusal(createRequiredError('distinct_ids'))
        if (isAll && idCount > 0)
          return refusal(createInvalidInputError('all', 'Send all, or uuids and distinct_ids, not both.'))
        if (idCount > repairedIdsMax)
          return refusal(createInvalidInputError('distinct_ids', 'At most 1,000 uuids and distinct ids together.'))
        const request: RebuildRequest = {
          ...{ kind: 'rebuild', applies: apply },
          persons: isAll ? null : { uuids: uuids.map(uuid => uuid.toLowerCase()), distinctIds: [...distinctIds] },
        }
        const repair = await management.requestRepair(project.id, request, openRepairsMax, change)
        return repair === null ? tooManyRepairs : answer(202, encodeRebuild(repair as PersonRepair<RebuildRequest>))
      },
    }),
    ...projectRoutes(deps, {
      route: 'GET /person_rebuilds/:rebuildId',
      id: 'persons_rebuild_status',
      tag,
      summary: 'Get a rebuild of persons: whether it is done, and what it changed or would change.',
      scope: 'person:read',
      success: { status: 200, schema: rebuildStatusSchema },
      handle: async ({ project, params }) => {
        const id = parseIdNumber(params.rebuildId!)
        const rebuild = id === null ? null : await management.findRebuild(project.id, id)
        return rebuild === null ? refusal(noSuchRebuild) : answer(200, encodeRebuild(rebuild))
      },
    }),
  ]
}
