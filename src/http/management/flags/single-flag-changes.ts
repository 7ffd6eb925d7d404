// Requests that change one thing of a flag and cannot touch the rest: switch it, archive it, set the percentage of one
// condition, roll it out to everyone. Source: docs/wire/private-api.md 4.2.

import Type from 'typebox'
import {
  archive,
  disable,
  enable,
  rollOutToEveryone,
  type SingleFlagChange,
  setConditionRollout,
  unarchive,
} from '#core/flags/definitions/single-flag-changes.ts'
import type { Result } from '#core/result.ts'
import type { WrittenFlag } from '#services/manage/manage-flags.ts'
import {
  activeDependents,
  anyUse,
  disabledDependencies,
  type Obstacle,
  type SingleFlagChangeRefusal,
  writeSingleFlagChange,
} from '#services/manage/write-single-flag-change.ts'
import { writtenFlagSchema } from '#wire/management/flags/flags.ts'
import { nullable } from '#wire/management/shapes.ts'
import { wireError } from '#wire/wire-error.ts'
import { type Answer, changedAtOnce, refusal } from '../kit/answers.ts'
import type { Caller } from '../kit/authenticate.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import type { ManagementRoute } from '../kit/endpoint.ts'
import { answerFlagWrite, encodeFlagInUseReason, flagRoutes } from '../kit/flag-endpoint.ts'

interface Switch {
  readonly change: SingleFlagChange
  readonly obstacle?: Obstacle
  readonly summary: string
}

const switches: Readonly<Record<string, Switch>> = {
  enable: { change: enable, obstacle: disabledDependencies, summary: 'Enable a flag.' },
  disable: { change: disable, obstacle: activeDependents, summary: 'Disable a flag.' },
  archive: { change: archive, obstacle: anyUse, summary: 'Archive an unused flag, which also disables it.' },
  unarchive: { change: unarchive, summary: 'Unarchive a flag; it stays inactive.' },
}

const version = Type.Integer({ description: 'Version the change is based on. 409 if it is no longer current.' })
const conditionRolloutSchema = Type.Object({
  condition_index: Type.Integer({ minimum: 0, description: 'Index in `filters.groups`, from 0.' }),
  rollout_percentage: Type.Number({ minimum: 0, maximum: 100 }),
  version,
})
const everyoneSchema = Type.Object({
  version,
  variant_key: Type.Optional(
    nullable(Type.String({ description: 'Variant for all users; required for a flag with variants.' })),
  ),
})

export function singleFlagChangesRoutes(deps: ManagementDeps): ManagementRoute[] {
  const toEndpointBase = (name: string) =>
    ({
      route: `POST /feature_flags/:flagId/${name}`,
      id: `feature_flags_${name}`,
      scope: 'feature_flag:write',
      success: { status: 200, schema: writtenFlagSchema },
    }) as const
  return [
    ...Object.entries(switches).flatMap(([name, { change: write, obstacle, summary }]) =>
      flagRoutes(deps, {
        ...toEndpointBase(name),
        summary: `${summary} The request body is ignored.`,
        ignoresBody: true,
        handle: async ({ caller, change, item: flag }) => {
          const options = { change, ...(obstacle && { obstacle }) }
          return answerWrite(deps, caller, await writeSingleFlagChange(deps, flag, write, options))
        },
      }),
    ),
    ...flagRoutes(deps, {
      ...toEndpointBase('set_release_condition_rollout'),
      summary: 'Set the rollout percentage of one condition set.',
      body: conditionRolloutSchema,
      handle: async ({ caller, change, item: flag, body }) => {
        const write = setConditionRollout(body.condition_index, body.rollout_percentage)
        const options = { sentVersion: body.version, change }
        return answerWrite(deps, caller, await writeSingleFlagChange(deps, flag, write, options), body.version)
      },
    }),
    ...flagRoutes(deps, {
      ...toEndpointBase('roll_out_to_everyone'),
      summary:
        'Roll the flag out to all users: insert a condition set before the others, with one variant if the flag has variants.',
      body: everyoneSchema,
      handle: async ({ caller, change, item: flag, body }) => {
        const write = rollOutToEveryone(body.variant_key ?? null)
        const options = { sentVersion: body.version, change }
        return answerWrite(deps, caller, await writeSingleFlagChange(deps, flag, write, options), body.version)
      },
    }),
  ]
}

async function answerWrite(
  deps: ManagementDeps,
  caller: Caller,
  written: Result<WrittenFlag, SingleFlagChangeRefusal>,
  sentVersion?: number,
): Promise<Answer> {
  if (written.ok) return answerFlagWrite(deps, caller, 200, written, { withWarnings: false })
  const { error } = written
  switch (error.kind) {
    case 'refused':
      return refusal(wireError(400, error.code, error.message, error.attr))
    case 'in_use': {
      const { reason, used_by } = encodeFlagInUseReason(error.by, 'archive', caller)
      return refusal(wireError(400, 'invalid_input', reason), { used_by })
    }
    case 'stale_version': {
      // Without a version in the request, a conflict means that another write changed the flag between the read and the
      // write of every try.
      if (sentVersion === undefined) return refusal(changedAtOnce)
      const detail = `The feature flag has changed since version ${sentVersion}.`
      const extra = { current_version: error.current.version, sent_version: sentVersion }
      return refusal(wireError(409, 'conflict', detail, 'version'), extra)
    }
    default:
      return answerFlagWrite(deps, caller, 200, { ok: false, error }, { withWarnings: false })
  }
}
