// Errors for servers that read definitions or remote configuration with a server key: status, code and the sentence
// that SDKs show. docs/wire/errors.md says how clients react to each. Source: docs/wire/evaluation.md 3.1, 7.1, 7.3.

import { wireError } from '../wire-error.ts'

export const serverKeyErrors = {
  noCredentials: wireError(401, 'not_authenticated', 'Authentication credentials were not provided.'),
  personalKeyInvalid: wireError(401, 'authentication_failed', 'Personal API key is invalid.'),
  secretKeyInvalid: wireError(401, 'authentication_failed', 'Secret API token is invalid.'),
  missingScope: wireError(
    403,
    'permission_denied',
    'Personal API key lacks required scopes (feature_flag:read or feature_flag:write).',
  ),
  otherProject: wireError(403, 'permission_denied', 'This key has no access to this project.'),
  missingToken: wireError(
    400,
    'required',
    'Failed to deserialize query string: missing field `token`. Name the project by its project API key: ?token=phc_…',
    'token',
  ),
  unknownToken: wireError(
    401,
    'authentication_failed',
    'The provided API key is invalid or has expired. Please check your API key and try again.',
  ),
  overQuota: wireError(402, 'payment_required', 'You have exceeded your feature flag request quota'),
  notFound: wireError(404, 'not_found', 'Not found.'),
  noRemoteConfig: wireError(
    404,
    'not_found',
    'This flag is not a remote configuration: PATCH it with {"is_remote_configuration": true} to make it one.',
  ),
  decryptFailed: wireError(
    500,
    'remote_config_decrypt_failed',
    'Failed to decrypt the remote config payload. Please contact support if the problem persists.',
  ),
} as const
