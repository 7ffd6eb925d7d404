// Reads what other tables store for flags, by flag id: experiments, early access features and the times of the last calls.

import type { Kysely } from 'kysely'
import { earlyAccessFeatureResource } from '#core/resources/early-access-feature.ts'
import type { FlagStore } from '#ports/state/flag-store.ts'
import { toResourceItem } from '../tables/resource-rows.ts'
import type { StateSchema } from '../tables/schema.ts'

const surveyFlagColumns = ['linked_flag_id', 'targeting_flag_id', 'internal_targeting_flag_id'] as const

export function createFlagOwnerQueries(
  db: Kysely<StateSchema>,
): Pick<FlagStore, 'listFlagOwners' | 'listFlagUses' | 'listLastCalls'> {
  return {
    async listFlagOwners(projectId, flagIds) {
      if (flagIds.length === 0) return []
      const experiments = await db
        .selectFrom('experiment')
        .select(['id', 'feature_flag_id'])
        .where('project_id', '=', projectId)
        .where('feature_flag_id', 'in', flagIds)
        .where('deleted', '=', 0)
        .orderBy('id')
        .execute()
      const features = await db
        .selectFrom('early_access_feature')
        .selectAll()
        .where('project_id', '=', projectId)
        .where('feature_flag_id', 'in', flagIds)
        .execute()
      const experimentsOf = Map.groupBy(experiments, row => Number(row.feature_flag_id))
      const featuresOf = Map.groupBy(
        features.map(row => toResourceItem(earlyAccessFeatureResource, row)),
        feature => feature.flagId!,
      )
      return [...new Set([...experimentsOf.keys(), ...featuresOf.keys()])].map(flagId => ({
        flagId,
        experimentIds: (experimentsOf.get(flagId) ?? []).map(row => Number(row.id)),
        features: featuresOf.get(flagId) ?? [],
      }))
    },

    async listFlagUses(projectId, flagIds, nowMs) {
      if (flagIds.length === 0) return []
      const experiments = await db
        .selectFrom('experiment')
        .select(['id', 'name', 'feature_flag_id'])
        .where('project_id', '=', projectId)
        .where('feature_flag_id', 'in', flagIds)
        .where('deleted', '=', 0)
        .where('archived', '=', 0)
        .where(eb => eb.or([eb('end_date', 'is', null), eb('end_date', '>', nowMs)]))
        .orderBy('id')
        .execute()
      const surveys = await db
        .selectFrom('survey')
        .select(['id', 'name', 'linked_flag_id', 'targeting_flag_id', 'internal_targeting_flag_id'])
        .where('project_id', '=', projectId)
        .where('archived', '=', 0)
        .where(eb => eb.or([eb('end_date', 'is', null), eb('end_date', '>', nowMs)]))
        .where(eb => eb.or(surveyFlagColumns.map(column => eb(column, 'in', flagIds))))
        .orderBy('created_at')
        .orderBy('id')
        .execute()
      const features = await db
        .selectFrom('early_access_feature')
        .select(['id', 'name', 'feature_flag_id'])
        .where('project_id', '=', projectId)
        .where('feature_flag_id', 'in', flagIds)
        .orderBy('created_at')
        .orderBy('id')
        .execute()
      const asked = new Set(flagIds)
      return [
        ...experiments.map(({ id, name, feature_flag_id }) => {
          return { flagId: Number(feature_flag_id), kind: 'experiment' as const, id: Number(id), name }
        }),
        ...surveys.flatMap(({ id, name, ...row }) =>
          surveyFlagColumns
            .map(column => Number(row[column]))
            .filter(flagId => asked.has(flagId))
            .map(flagId => ({ flagId, kind: 'survey' as const, id, name })),
        ),
        ...features.map(({ id, name, feature_flag_id }) => {
          return { flagId: Number(feature_flag_id), kind: 'early_access_feature' as const, id, name }
        }),
      ]
    },

    async listLastCalls(projectId, flagIds) {
      if (flagIds.length === 0) return []
      const rows = await db
        .selectFrom('flag_last_call as call')
        .innerJoin('feature_flag as flag', 'flag.id', 'call.flag_id')
        .select(['call.flag_id', 'call.called_at'])
        .where('call.flag_id', 'in', flagIds)
        .where('flag.project_id', '=', projectId)
        .execute()
      return rows.map(row => ({ flagId: Number(row.flag_id), calledAtMs: Number(row.called_at) }))
    },
  }
}
