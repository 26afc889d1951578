// `npm run schemas`: rewrites the schemas that are made from the code's own definitions.

import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { SCHEMAS, schemaFiles } from "./connector_schemas.ts";

for (const file of readdirSync(SCHEMAS)) rmSync(new URL(file, SCHEMAS));
for (const [file, text] of schemaFiles()) writeFileSync(new URL(file, SCHEMAS), text);
