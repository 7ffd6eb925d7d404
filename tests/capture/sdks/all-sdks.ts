// One capture request per SDK and age, as that version puts it on the wire: path, query, content type, encoding and the
// shape of its body. Source: docs/wire/clients.md 3, row by row; what is stored follows from docs/wire/ingestion.md 1–3.

import { browserSdks, liteSdks } from './browser-sdks.ts'
import { gzippingSdks, mobileSdks } from './device-sdks.ts'
import { directCalls } from './direct-calls.ts'
import { nodeAndPythonSdks } from './node-and-python-sdks.ts'
import type { SdkRequest } from './sdk-request.ts'
import { serverSdks } from './server-sdks.ts'

/** @param token a project API key, which stands in each body where the SDK puts it. */
export function sdkRequests(token: string): SdkRequest[] {
  return [
    ...nodeAndPythonSdks(token),
    ...serverSdks(token),
    ...gzippingSdks(token),
    ...mobileSdks(token),
    ...browserSdks(token),
    ...liteSdks(token),
    ...directCalls(token),
  ]
}
