// What the server says of something that was asked; read out as soon as it is there.
import { fillIn } from "./fragment.js";

export function start(element, props, trigger, watch) {
  const show = () => fillIn(element.querySelector("[role]"), props.value ?? "");
  watch("value", show);
  show();
}
