// A feature that people can try before its general release. A person's choice is the person property
// `$feature_enrollment/<flag key>`, which decides the feature's flag. Source: docs/wire/evaluation.md 5.7, 7.4.

import {
  authorField,
  booleanField,
  choiceField,
  type ItemOf,
  instantField,
  integerField,
  nameSchema,
  nullable,
  objectField,
  textField,
  uuidField,
} from '../resource.ts'

export const earlyAccessStages = ['draft', 'concept', 'alpha', 'beta', 'general-availability', 'archived'] as const
export type EarlyAccessStage = (typeof earlyAccessStages)[number]

export const earlyAccessFeatureResource = {
  table: 'early_access_feature',
  required: ['name'],
  fields: {
    id: uuidField('id'),
    projectId: integerField('project_id', { isShown: false }),
    flagId: nullable(integerField('feature_flag_id', { isShown: false })),
    /** True when the flag was made for the feature; false when it existed before and may have other uses. */
    flagIsOwn: booleanField('owns_flag', { isShown: false }),
    name: textField('name', { schema: nameSchema(200) }),
    description: textField('description', { schema: { type: 'string', maxLength: 10_000 }, initial: '' }),
    stage: choiceField('stage', earlyAccessStages, { initial: 'draft' }),
    documentationUrl: textField('documentation_url', {
      schema: { type: 'string', maxLength: 800, description: 'Documentation URL for users; http or https.' },
      initial: '',
    }),
    payload: objectField('payload', {
      schema: { type: 'object', description: 'Passed to web pages unchanged.' },
      initial: {},
    }),
    createdAtMs: instantField('created_at'),
    createdBy: nullable(authorField('created_by')),
  },
} as const

export type EarlyAccessFeature = ItemOf<typeof earlyAccessFeatureResource>
