// The policy as a picture: what brings untrusted content on the left, roles in the middle, what has an effect
// outside on the right, and lines between them. Drawn by hand as SVG without any style of its own (pages.css).
// The ways in words and the table say all of it too; the picture has a title and a description.

import { useId } from "preact/hooks";
import { visibleLine } from "../../../base/display.ts";
import { counted } from "../../../base/json_text.ts";
import type { PolicyReach } from "../../../client/load_answers.ts";
import { Empty } from "./parts.tsx";
import { type LineKind, type Picture, type PictureLine, type PictureNode, pictureOf } from "./reach.ts";
import { Scroller } from "./scroller.tsx";

const WIDTH = 960;
const NODE_WIDTH = 220;
const NODE_HEIGHT = 40;
const NODE_STEP = 58;
const TOP = 44;
const COLUMNS_X = [8, (WIDTH - NODE_WIDTH) / 2, WIDTH - NODE_WIDTH - 8] as const;
const NAME_CHARS = 26;

interface Place {
  readonly node: PictureNode;
  readonly x: number;
  /** Its middle. */
  readonly y: number;
}

const LEGEND: readonly (readonly [LineKind, string])[] = [
  ["open", "open: from untrusted content to an effect without a person"],
  ["asked", "a person is asked"],
  ["free", "goes through, and no way leads on from it"],
  ["clean", "only as long as nothing untrusted was read"],
];

export function ReachPicture({ reach }: { reach: PolicyReach }) {
  const picture = pictureOf(reach);
  if (picture.lines.length === 0)
    return <Empty>No role reads anything untrusted, and none has an effect outside.</Empty>;
  return (
    <figure class="picture">
      <Scroller label="The policy as a picture">
        <Drawing picture={picture} paths={reach.paths.length} />
      </Scroller>
      <figcaption>
        <ul class="legend">
          {LEGEND.map(([kind, words]) => (
            <li key={kind}>
              <svg class="key" viewBox="0 0 28 8" aria-hidden="true">
                <path class={`line line-${kind}`} d="M1 4h26" />
              </svg>
              {words}
            </li>
          ))}
        </ul>
        {picture.more ? <p class="hint">Not all of it fits; the table below has the rest.</p> : null}
      </figcaption>
    </figure>
  );
}

function Drawing({ picture, paths }: { picture: Picture; paths: number }) {
  const id = useId();
  const columns = [picture.sources, picture.roles, picture.sinks];
  const tallest = Math.max(...columns.map((nodes) => nodes.length));
  const height = TOP + tallest * NODE_STEP;
  const places = columns.flatMap((nodes, i) => placed(nodes, COLUMNS_X[i] ?? 0, tallest));
  const at = new Map(places.map((place) => [place.node.id, place]));
  // The grave ones last, so that they are on top.
  const lines = picture.lines.toSorted((a, b) => Number(a.kind === "open") - Number(b.kind === "open"));
  return (
    <svg viewBox={`0 0 ${WIDTH} ${height}`} role="img" aria-labelledby={`${id}-title ${id}-desc`}>
      <title id={`${id}-title`}>Which role reads untrusted content, and what it can then do</title>
      <desc id={`${id}-desc`}>{descriptionOf(picture, paths)}</desc>
      {["Brings untrusted content", "Roles", "Has an effect outside"].map((head, i) => (
        <text key={head} class="column-head" x={(COLUMNS_X[i] ?? 0) + NODE_WIDTH / 2} y={20}>
          {head}
        </text>
      ))}
      {lines.map((line) => (
        <Line key={`${line.from} ${line.to}`} line={line} from={at.get(line.from)} to={at.get(line.to)} />
      ))}
      {places.map((place) => (
        <Node key={place.node.id} {...place} />
      ))}
    </svg>
  );
}

/** A shorter column stands in the middle of the height. */
function placed(nodes: readonly PictureNode[], x: number, tallest: number): readonly Place[] {
  const above = ((tallest - nodes.length) * NODE_STEP) / 2;
  return nodes.map((node, i) => ({ node, x, y: TOP + above + i * NODE_STEP + NODE_HEIGHT / 2 }));
}

function descriptionOf({ sources, roles, sinks, lines }: Picture, paths: number): string {
  const open = lines.filter(({ kind }) => kind === "open").map(({ words }) => words);
  const size = `${counted(sources.length, "source")}, ${counted(roles.length, "role")}, ${counted(sinks.length, "tool")} with an effect.`;
  const ways = paths === 0 ? "No way is open." : `${counted(paths, "way")} open: ${open.join("; ")}.`;
  return visibleLine(`${size} ${ways}`, 3000);
}

function Node({ node, x, y }: Place) {
  return (
    <g class="node">
      <rect x={x} y={y - NODE_HEIGHT / 2} width={NODE_WIDTH} height={NODE_HEIGHT} rx={6} />
      <text x={x + 12} y={node.note === "" ? y + 4.5 : y - 2}>
        {visibleLine(node.name, NAME_CHARS)}
      </text>
      {node.note === "" ? null : (
        <text class="note" x={x + 12} y={y + 13}>
          {visibleLine(node.note, 34)}
        </text>
      )}
      <title>{visibleLine(node.name)}</title>
    </g>
  );
}

interface LineProps {
  readonly line: PictureLine;
  readonly from: Place | undefined;
  readonly to: Place | undefined;
}

function Line({ line, from, to }: LineProps) {
  if (from === undefined || to === undefined) return null;
  return (
    <path class={`line line-${line.kind}`} d={from.x === to.x ? bow(from, to) : curve(from, to)}>
      <title>{visibleLine(line.words)}</title>
    </path>
  );
}

function curve(from: Place, to: Place): string {
  const [x1, x2] = [from.x + NODE_WIDTH, to.x];
  const middle = (x1 + x2) / 2;
  return `M${x1} ${from.y}C${middle} ${from.y} ${middle} ${to.y} ${x2} ${to.y}`;
}

/** From role to role: out to the right and back. */
function bow(from: Place, to: Place): string {
  const x = from.x + NODE_WIDTH;
  const out = x + 34 + Math.abs(from.y - to.y) / 6;
  return `M${x} ${from.y + 8}C${out} ${from.y + 8} ${out} ${to.y - 8} ${x} ${to.y - 8}`;
}
