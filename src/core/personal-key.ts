// A personal API key. The key itself is shown once; only its hash is stored.

import {
  type ItemOf,
  idSchema,
  instantField,
  integersField,
  nullable,
  orNull,
  storeInColumn,
  textField,
  textsField,
} from './resource.ts'

export const personalKeyResource = {
  table: 'personal_api_key',
  required: ['label', 'scopes'],
  fields: {
    id: textField('id'),
    label: textField('label', { schema: { type: 'string', minLength: 1, maxLength: 200 } }),
    /** `*`, or scopes such as `feature_flag:read`. */
    scopes: textsField('scopes', {
      schema: {
        ...{ type: 'array', items: { type: 'string', maxLength: 100 }, maxItems: 100 },
        description: '["*"] for all, or a list such as ["feature_flag:read", "project:write"]. Write includes read.',
      },
    }),
    /** Ids of the projects the key is limited to; empty means all. */
    scopedProjectIds: storeInColumn(
      'scoped_project_ids',
      integersField('scoped_teams', {
        schema: orNull({
          ...{ type: 'array', items: idSchema, maxItems: 1_000 },
          description: 'Ids of the projects the key is limited to; empty or null: all projects.',
        }),
      }),
    ),
    createdAtMs: instantField('created_at'),
    lastUsedAtMs: nullable(instantField('last_used_at')),
  },
} as const

export type PersonalKey = ItemOf<typeof personalKeyResource>
